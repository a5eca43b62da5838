//go:build tools

package main

import _ "github.com/kubeflow/mpi-operator/cmd/mpi-operator"
