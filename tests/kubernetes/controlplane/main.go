// Controlplane is kube-apiserver, kube-controller-manager, kube-scheduler or kubectl, by the name it is called
// with: the real programs, built from the published modules, that Muster is measured against.
package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubectl":                 cmd.NewDefaultKubectlCommand,
	}
	name := filepath.Base(os.Args[0])
	command, known := commands[name]
	if !known {
		println("call this program as kube-apiserver, kube-controller-manager, kube-scheduler or kubectl, not " + name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
