// volcano-beside: scenario files played by the real Volcano.
//
//	volcano-beside check PATH…            does Volcano do what the files expect?
//	volcano-beside show PATH…             what Volcano does, where all runs agree
//	volcano-beside random OUT             random scenarios with what Volcano does in them, where all runs agree
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"k8s.io/klog/v2"
)

var (
	runs  = flag.Int("runs", 12, "how often each scenario is played; half of the runs have all pods from the start")
	seed  = flag.Int64("seed", 1, "of the first random scenario")
	count = flag.Int("count", 100, "random scenarios")
	log   = flag.Int("log", 0, "Volcano's own log up to this level, to standard error")
	trace = flag.Bool("trace", false, "print every cycle of the first two runs")
	kind  = flag.String("kind", "", "random scenarios of this kind only (see random.go)")
)

// Every run of a scenario; runs end early where a step does not settle.
func play(f *file) ([][]expect, error) {
	all := [][]expect{}
	for i := 0; i < *runs; i++ {
		w, err := newWorld(f, i%2 == 0, i%4 >= 2, int64(i))
		if err != nil {
			return nil, err
		}
		w.tell = *trace && i < 2
		steps := []expect{}
		for _, s := range f.Steps {
			e, settled, err := w.step(s)
			if err != nil {
				return nil, err
			}
			if !settled {
				break
			}
			steps = append(steps, e)
		}
		all = append(all, steps)
	}
	return all, nil
}

// What all runs agree on: steps up to the first that came out differently; of these the details that are always the same.
func agreed(all [][]expect) []expect {
	out := []expect{}
	for n := 0; ; n++ {
		for _, r := range all {
			if n >= len(r) {
				return out
			}
		}
		e := all[0][n]
		for _, r := range all[1:] {
			if !reflect.DeepEqual(e.Evicted, r[n].Evicted) || len(e.Groups) != len(r[n].Groups) {
				return out
			}
			if !reflect.DeepEqual(e.EvictedPods, r[n].EvictedPods) {
				e.EvictedPods = nil
			}
			for name, a := range e.Groups {
				b := r[n].Groups[name]
				if a.Running != b.Running || a.Pending != b.Pending || a.State != b.State {
					return out
				}
				if a.Phase != b.Phase {
					a.Phase = ""
					e.Groups[name] = a
				}
				if !reflect.DeepEqual(e.Placement[name], r[n].Placement[name]) {
					delete(e.Placement, name)
				}
			}
		}
		out = append(out, e)
	}
}

// Differences between what a file expects and what one step came to.
func compare(want, got expect) []string {
	diffs := []string{}
	say := func(format string, args ...interface{}) { diffs = append(diffs, fmt.Sprintf(format, args...)) }
	for name, w := range want.Groups {
		g, ok := got.Groups[name]
		if !ok {
			say("%s: no such group", name)
			continue
		}
		if w.Phase == "" {
			g.Phase = ""
		}
		if w != g {
			say("%s: expected %+v, Volcano %+v", name, w, g)
		}
	}
	for name := range got.Groups {
		if want.Evicted[name] != got.Evicted[name] {
			say("%s: expected %d evictions, Volcano %d", name, want.Evicted[name], got.Evicted[name])
		}
	}
	if want.EvictedPods != nil {
		pods := []string{}
		for _, p := range want.EvictedPods {
			pods = append(pods, p[strings.Index(p, "/")+1:])
		}
		sort.Strings(pods)
		if !reflect.DeepEqual(pods, got.EvictedPods) {
			say("evicted pods: expected %v, Volcano %v", pods, got.EvictedPods)
		}
	}
	for name, w := range want.Placement {
		g := got.Placement[name]
		for _, m := range []map[string]int{w, g} {
			for k, v := range m {
				if v == 0 {
					delete(m, k)
				}
			}
		}
		if len(w)+len(g) > 0 && !reflect.DeepEqual(w, g) {
			say("%s: expected on %v, Volcano %v", name, w, g)
		}
	}
	sort.Strings(diffs)
	return diffs
}

func check(path string) bool {
	f, err := readFile(path)
	if err != nil {
		fmt.Printf("%s: %v\n", path, err)
		return false
	}
	all, err := play(f)
	if err != nil {
		fmt.Printf("%s: %v\n", path, err)
		return false
	}
	said := map[string]int{}
	bad := 0
	for _, run := range all {
		here := []string{}
		for n, s := range f.Steps {
			if n >= len(run) {
				here = append(here, fmt.Sprintf("step %d: does not settle", n))
				break
			}
			for _, d := range compare(s.Expect, run[n]) {
				here = append(here, fmt.Sprintf("step %d: %s", n, d))
			}
			if len(here) > 0 {
				break // What follows, follows from this.
			}
		}
		if len(here) > 0 {
			bad++
		}
		for _, d := range here {
			said[d]++
		}
	}
	if bad == 0 {
		return true
	}
	fmt.Printf("%s: %d of %d runs differ\n", path, bad, len(all))
	lines := []string{}
	for d, n := range said {
		lines = append(lines, fmt.Sprintf("  %s (%d runs)", d, n))
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
	return false
}

func show(path string) bool {
	f, err := readFile(path)
	if err != nil {
		fmt.Printf("%s: %v\n", path, err)
		return false
	}
	all, err := play(f)
	if err != nil {
		fmt.Printf("%s: %v\n", path, err)
		return false
	}
	for n, e := range agreed(all) {
		text, _ := json.Marshal(e)
		fmt.Printf("%s step %d: %s\n", path, n, text)
	}
	return true
}

func files(paths []string) []string {
	out := []string{}
	for _, p := range paths {
		_ = filepath.Walk(p, func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() && strings.HasSuffix(path, ".json") {
				out = append(out, path)
			}
			return err
		})
	}
	return out
}

func main() {
	flag.Parse()
	logs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logs)
	if *log > 0 {
		_ = logs.Parse([]string{fmt.Sprintf("-v=%d", *log)})
	} else {
		_ = logs.Parse([]string{"-logtostderr=false", "-alsologtostderr=false", "-stderrthreshold=4"})
		klog.SetOutput(io.Discard)
	}
	args := flag.Args()
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: volcano-beside [-runs N] [-seed N] [-count N] [-kind K] check|show|random PATH…")
		os.Exit(2)
	}
	failed := 0
	switch args[0] {
	case "check", "show":
		paths := files(args[1:])
		for _, p := range paths {
			ok := false
			if args[0] == "check" {
				ok = check(p)
			} else {
				ok = show(p)
			}
			if !ok {
				failed++
			}
		}
		fmt.Printf("%d files, %d differ\n", len(paths), failed)
	case "random":
		failed = randomScenarios(args[1])
	default:
		fmt.Fprintln(os.Stderr, "unknown command", args[0])
		failed = 1
	}
	if failed > 0 {
		os.Exit(1)
	}
}
