// Etcd is the real server, built from its published module, for the real kube-apiserver of these tests.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
