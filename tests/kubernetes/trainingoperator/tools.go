//go:build tools

package main

import _ "github.com/kubeflow/training-operator/cmd/training-operator.v1"
