// Helm renders a chart as `helm template` does, with Helm's own engine, and lists the CRDs that `helm install` would make.
//
//	helm CHART NAMESPACE [VALUES.yaml]
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func run() error {
	chart, err := loader.Load(os.Args[1])
	if err != nil {
		return err
	}
	values := chartutil.Values{}
	if len(os.Args) > 3 {
		if values, err = chartutil.ReadValuesFile(os.Args[3]); err != nil {
			return err
		}
	}
	release := chartutil.ReleaseOptions{Name: "muster", Namespace: os.Args[2], IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	for _, crd := range chart.CRDObjects() {
		fmt.Printf("---\n%s\n", crd.File.Data)
	}
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(rendered[name]) != "" {
			fmt.Printf("---\n%s\n", rendered[name])
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: helm CHART NAMESPACE [VALUES.yaml]")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
