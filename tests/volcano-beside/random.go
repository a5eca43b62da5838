// Small random scenarios with much contention: few nodes, few queues, groups that do not all fit.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
)

var kinds = []string{"basic", "preempt", "proportion", "capacity", "tree", "sla", "mixed", "hdrf"}

type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.Intn(100) < percent }
func (d dice) between(low, high int) int {
	return low + d.Intn(high-low+1)
}
func (d dice) pick(of ...string) string { return of[d.Intn(len(of))] }

type draft struct {
	dice
	filling bool // The first step of scenarios with evictions: room is taken by groups that can give some of it back.
	home    string
	f       *file
	kind    string
	gpus    bool
	memory  bool
	leaves  []string
	inner   []string
	groups  []string
	nodes   []string
	serial  int
}

func plugin(name string) map[string]interface{} { return map[string]interface{}{"name": name} }

func (d draft) amounts(cpu, gpu int) resources {
	r := resources{"cpu": strconv.Itoa(cpu)}
	if d.memory {
		r["memory"] = strconv.Itoa(cpu*2) + "Gi"
	}
	if d.gpus && gpu > 0 {
		r["nvidia.com/gpu"] = strconv.Itoa(gpu)
	}
	return r
}

func (d *draft) config() {
	c := &d.f.Config
	victims := d.chance(75) // All who choose victims in one tier, the documented layout.
	gang := plugin("gang")
	if d.chance(35) {
		gang["enablePreemptable"] = false
	}
	if d.chance(10) {
		gang["enableReclaimable"] = false
	}
	if d.chance(8) {
		gang["enableJobStarving"] = false
	}
	priority := plugin("priority")
	if d.chance(8) {
		priority["enableJobStarving"] = false
	}
	first := []map[string]interface{}{priority, gang}
	if d.chance(8) {
		first = []map[string]interface{}{gang, priority}
	}
	if d.chance(6) {
		first = []map[string]interface{}{gang}
	}
	if d.chance(70) {
		first = append(first, plugin("conformance"))
	}
	second := []map[string]interface{}{}
	if d.chance(60) {
		o := plugin("overcommit")
		if d.chance(30) {
			o["arguments"] = map[string]interface{}{"overcommit-factor": []float64{1, 1.5, 2}[d.Intn(3)]}
		}
		second = append(second, o)
	}
	if d.kind == "hdrf" || d.chance(55) {
		drf := plugin("drf")
		if d.chance(50) {
			drf["enablePreemptable"] = false
		}
		if d.chance(10) {
			drf["enableJobOrder"] = false
		}
		if d.kind == "hdrf" {
			drf["enableHierarchy"] = true
		}
		if d.kind == "hdrf" && victims {
			first = append(first, drf)
		} else {
			second = append(second, drf)
		}
	}
	if d.chance(95) {
		second = append(second, plugin("predicates"))
	}
	share := ""
	switch d.kind {
	case "basic", "preempt", "sla":
		share = d.pick("proportion", "proportion", "capacity", "")
	case "proportion", "capacity":
		share = d.kind
	case "tree":
		share = "capacity"
	case "hdrf":
		share = d.pick("capacity", "", "", "")
	case "mixed":
		share = d.pick("proportion", "capacity")
	}
	if share != "" {
		p := plugin(share)
		if d.kind == "tree" {
			p["enableHierarchy"] = true
			if d.chance(20) {
				p["arguments"] = map[string]interface{}{"ancestorReclaimLevel": d.between(1, 2)}
			}
		}
		if victims {
			first = append(first, p)
		} else {
			second = append(second, p)
		}
	}
	if d.chance(50) {
		second = append(second, plugin("nodeorder"))
	}
	if d.chance(30) {
		b := plugin("binpack")
		if d.gpus && d.chance(50) {
			b["arguments"] = map[string]interface{}{"binpack.resources": "nvidia.com/gpu", "binpack.resources.nvidia.com/gpu": 5}
		}
		second = append(second, b)
	}
	if d.kind == "sla" || d.chance(4) {
		s := plugin("sla")
		if d.chance(50) {
			s["arguments"] = map[string]interface{}{"sla-waiting-time": strconv.Itoa(d.between(5, 35)) + "s"}
		}
		switch d.Intn(3) {
		case 0:
			c.Tiers = append(c.Tiers, []map[string]interface{}{s})
		case 1:
			first = append(first, s)
		default:
			second = append(second, s)
		}
	}
	c.Tiers = append(c.Tiers, first, second)

	c.Actions = []string{"enqueue", "allocate", "backfill"}
	more := map[string][]string{"preempt": {"preempt"}, "proportion": {"reclaim"}, "capacity": {"reclaim"}, "tree": {"reclaim"}, "hdrf": {"reclaim"},
		"mixed": {"preempt", "reclaim"}, "sla": {}, "basic": {}}[d.kind]
	if d.kind == "mixed" && d.chance(50) {
		more = []string{"reclaim", "preempt"}
	}
	if d.kind == "hdrf" && d.chance(30) {
		more = []string{}
	}
	if d.kind == "sla" && d.chance(30) {
		more = []string{"preempt"}
	}
	// Never before allocate: there Volcano holds a group for ever that Muster binds (docs/volcano.md).
	if d.chance(30) {
		c.Actions = append([]string{"enqueue", "allocate"}, append(more, "backfill")...)
	} else {
		c.Actions = append(c.Actions, more...)
	}
	if d.chance(8) {
		c.Actions = c.Actions[1:]
	}
}

func (d *draft) newNode() node {
	d.serial++
	n := node{Name: fmt.Sprintf("n%d", d.serial), Allocatable: resources{"cpu": strconv.Itoa(d.between(2, 8)), "memory": "64Gi", "pods": "110"}}
	if d.memory {
		n.Allocatable["memory"] = strconv.Itoa(d.between(4, 16)) + "Gi"
	}
	if d.gpus && d.chance(85) {
		n.Allocatable["nvidia.com/gpu"] = strconv.Itoa(d.between(1, 4))
	}
	if d.chance(12) {
		n.Allocatable["pods"] = strconv.Itoa(d.between(2, 5))
	}
	if d.chance(50) {
		n.Labels = map[string]string{"zone": d.pick("a", "b")}
	}
	d.nodes = append(d.nodes, n.Name)
	return n
}

func (d *draft) bounds(q *queue, share string) {
	deserved, guarantee := 0, 0
	if share == "capacity" && d.chance(85) || d.chance(10) {
		deserved = d.between(1, 6)
		q.Deserved = d.amounts(deserved, d.between(1, 3))
	}
	if d.chance(20) {
		guarantee = d.between(1, 2)
		g := d.amounts(guarantee, 0)
		if deserved < guarantee {
			deserved = guarantee
		}
		q.Guarantee = g
		q.Deserved = d.amounts(deserved, 2)
	}
	if d.chance(25) {
		q.Capability = d.amounts(max(deserved, d.between(2, 8)), 3)
		if d.gpus && d.chance(30) {
			delete(q.Capability, "nvidia.com/gpu")
		}
	}
}

func (d *draft) queues() {
	no := false
	d.f.Queues = []queue{{Name: "root", Reclaimable: &no}}
	if d.kind == "tree" {
		d.tree()
		return
	}
	if d.kind == "hdrf" {
		d.hierarchy()
		return
	}
	d.leaves = []string{"default"}
	d.f.Queues = append(d.f.Queues, queue{Name: "default"})
	most := map[string]int{"basic": 1, "preempt": 1, "sla": 1}[d.kind]
	if most == 0 {
		most = 3
	}
	share := "proportion"
	if d.kind == "capacity" {
		share = "capacity"
	}
	low := 0
	if most > 1 {
		low = 1
	}
	for i := d.between(low, most); i > 0; i-- {
		q := queue{Name: fmt.Sprintf("q%d", i)}
		if d.chance(40) {
			w := int32(d.between(1, 4))
			q.Weight = &w
		}
		if d.chance(15) {
			q.Priority = int32(d.between(1, 3))
		}
		if d.chance(12) {
			q.Reclaimable = &no
		}
		if d.chance(4) {
			q.State = "Closed"
		}
		d.bounds(&q, share)
		d.f.Queues = append(d.f.Queues, q)
		d.leaves = append(d.leaves, q.Name)
	}
	if len(d.leaves) > 2 && d.chance(60) {
		d.leaves = d.leaves[1:]
	}
}

func (d *draft) tree() {
	no := false
	d.f.Queues = append(d.f.Queues, queue{Name: "default"})
	for _, top := range []string{"a", "b", "c"}[:d.between(2, 3)] {
		q := queue{Name: top, Parent: "root"}
		d.bounds(&q, "capacity")
		at := len(d.f.Queues)
		d.f.Queues = append(d.f.Queues, q)
		children := d.between(0, 2)
		if children == 0 {
			d.leaves = append(d.leaves, top)
			continue
		}
		d.inner = append(d.inner, top)
		// What children are promised, the parent has.
		sum, held := 0, 0
		for i := 1; i <= children; i++ {
			c := queue{Name: fmt.Sprintf("%s%d", top, i), Parent: top}
			if d.chance(80) {
				n := d.between(1, 3)
				sum += n
				c.Deserved = d.amounts(n, 1)
				if d.chance(20) {
					held++
					c.Guarantee = d.amounts(1, 0)
				}
			}
			if d.chance(10) {
				c.Priority = 1
			}
			if d.chance(10) {
				c.Reclaimable = &no
			}
			d.f.Queues = append(d.f.Queues, c)
			d.leaves = append(d.leaves, c.Name)
		}
		p := &d.f.Queues[at]
		if sum > 0 {
			p.Deserved = d.amounts(sum+d.between(0, 2), children)
		}
		if held > 0 {
			p.Guarantee = d.amounts(held, 0)
		}
		if p.Capability != nil {
			p.Capability = d.amounts(sum+d.between(2, 4), 4)
		}
	}
}

// Paths two or three parts long. Weights are powers of two: with others Volcano's rounding decides between equals.
func (d *draft) hierarchy() {
	no := false
	weight := func() string { return d.pick("1", "1", "2", "4") }
	d.f.Queues = append(d.f.Queues, queue{Name: "default"})
	for _, top := range []string{"a", "b", "c"}[:d.between(2, 3)] {
		above := weight()
		children := d.between(0, 2)
		for i := 0; i <= children; i++ {
			q := queue{Name: fmt.Sprintf("%s%d", top, i), Hierarchy: fmt.Sprintf("root/%s/%d", top, i), HierarchyWeights: "1/" + above + "/" + weight()}
			if children == 0 {
				q.Hierarchy, q.HierarchyWeights = "root/"+top, "1/"+above
			}
			if d.chance(10) {
				q.Reclaimable = &no
			}
			d.f.Queues = append(d.f.Queues, q)
			d.leaves = append(d.leaves, q.Name)
		}
	}
}

func (d *draft) group() op {
	d.serial++
	o := op{Op: "create_group", Name: fmt.Sprintf("g%d", d.serial), Queue: d.leaves[d.Intn(len(d.leaves))]}
	if len(d.inner) > 0 && d.chance(2) {
		o.Queue = d.inner[0]
	}
	if d.chance(60) {
		o.PriorityClass = d.pick("low", "mid", "high")
	}
	if d.filling {
		o.PriorityClass = d.pick("low", "low", "mid", "")
		if d.kind != "preempt" && d.chance(80) {
			o.Queue = d.home
		}
	} else if d.home != "" && d.chance(50) {
		o.PriorityClass = "high"
	}
	if d.chance(2) {
		o.Namespace = "kube-system"
	}
	if d.kind == "sla" && d.chance(60) {
		o.SLAWaitingTime = strconv.Itoa(d.between(1, 25)) + "s"
	}
	total, cpus := 0, 0
	roles := []string{"worker"}
	if d.chance(30) {
		roles = []string{"master", "worker"}
	}
	mins := map[string]int32{}
	for _, role := range roles {
		n := d.between(1, 4)
		if d.filling {
			n = d.between(2, 8)
		}
		if role == "master" {
			n = d.between(1, 2)
		}
		t := task{Role: role, Replicas: &n}
		cpu, gpu := d.between(1, 3), d.between(0, 2)
		if d.filling && d.chance(60) {
			cpu, gpu = 1, 1
		}
		t.Requests = d.amounts(cpu, gpu)
		if d.chance(8) {
			t.Requests, cpu = resources{}, 0
		}
		if d.chance(15) {
			t.Priority = int32(d.between(1, 10))
		}
		no := false
		if d.chance(8) {
			t.Preemptable = &no
		}
		if d.chance(6) {
			t.PreemptionPolicy = "Never"
		}
		if d.chance(12) {
			t.NodeSelector = map[string]string{"zone": d.pick("a", "b")}
		}
		o.Tasks = append(o.Tasks, t)
		mins[role] = int32(d.between(0, n))
		total += n
		cpus += cpu * n
	}
	least := int32(d.between(1, total))
	if d.filling && d.chance(70) {
		least = 1
	} else if d.chance(40) {
		least = int32(total)
	}
	if d.chance(3) {
		least = 0
	}
	if d.chance(2) {
		least = int32(total + 1)
	}
	o.MinMember = &least
	if d.chance(15) {
		o.MinTaskMember = mins
	}
	if d.chance(50) {
		// What the minimum asks for, about; without GPUs, of which Volcano counts a thousandth while the group waits.
		r := d.amounts(max(1, cpus*int(least)/total), 0)
		if d.chance(15) {
			r = d.amounts(d.between(1, 10), 0)
		}
		o.MinResources = &r
	}
	d.groups = append(d.groups, o.Name)
	return o
}

func (d *draft) drop() string {
	i := d.Intn(len(d.groups))
	name := d.groups[i]
	d.groups = append(d.groups[:i], d.groups[i+1:]...)
	return name
}

func (d *draft) steps() {
	at := int64(0)
	completed := map[string]bool{}
	for i := d.between(2, 4); i > 0; i-- {
		s := step{At: at}
		d.filling = len(d.f.Steps) == 0 && d.kind != "basic" && d.kind != "sla" && d.chance(80)
		if d.filling {
			d.home = d.leaves[d.Intn(len(d.leaves))]
		}
		if len(d.f.Steps) == 0 || d.chance(75) {
			for n := d.between(1, 3); n > 0; n-- {
				s.Do = append(s.Do, d.group())
			}
		}
		switch {
		case len(d.f.Steps) == 0:
		// Pods that ended count as wanted in Volcano's tree (docs/volcano.md).
		case d.kind != "hdrf" && d.chance(25) && len(d.groups) > 0:
			name := d.groups[d.Intn(len(d.groups))]
			if !completed[name] {
				completed[name] = true
				s.Do = append(s.Do, op{Op: "complete_group", Group: name})
			}
		case d.chance(15) && len(d.groups) > 0:
			s.Do = append(s.Do, op{Op: "delete_group", Group: d.drop()})
		case d.chance(15):
			text, _ := json.Marshal(d.newNode())
			s.Do = append(s.Do, op{Op: "add_node", Node: text})
		case d.chance(15) && len(d.nodes) > 1:
			text, _ := json.Marshal(d.nodes[0])
			d.nodes = d.nodes[1:]
			s.Do = append(s.Do, op{Op: "remove_node", Node: text})
		case d.chance(10):
			s.Do = append(s.Do, op{Op: "set_queue", Queue: d.leaves[d.Intn(len(d.leaves))], State: d.pick("Closed", "Open")})
		}
		if len(s.Do) == 0 {
			s.Do = append(s.Do, d.group())
		}
		d.f.Steps = append(d.f.Steps, s)
		at += int64(d.between(1, 20))
	}
}

func randomFile(seed int64, kind string) *file {
	d := &draft{dice: dice{rand.New(rand.NewSource(seed))}, kind: kind}
	if kind == "" {
		d.kind = kinds[d.Intn(len(kinds))]
	}
	d.gpus, d.memory = d.chance(40), d.chance(30)
	d.f = &file{ID: fmt.Sprintf("random-%s-%d", d.kind, seed), Title: "a random scenario", Strictness: "compat",
		Classes: map[string]int32{"low": 10, "mid": 100, "high": 1000}}
	d.config()
	most := 4
	if d.kind != "basic" && d.kind != "sla" && d.chance(75) {
		most = 2 // Who is evicted depends on who happens to be where.
	}
	for n := d.between(1, most); n > 0; n-- {
		d.f.Nodes = append(d.f.Nodes, d.newNode())
	}
	d.queues()
	d.steps()
	return d.f
}

// Writes those of which at least the first step comes out the same in all runs, with what came out.
func randomScenarios(out string) int {
	kept, steps := 0, 0
	for i := int64(0); i < int64(*count); i++ {
		f := randomFile(*seed+i, *kind)
		all, err := play(f)
		if err != nil {
			fmt.Println(f.ID, err)
			return 1
		}
		same := agreed(all)
		if len(same) == 0 {
			continue
		}
		f.Steps = f.Steps[:len(same)]
		for n := range same {
			f.Steps[n].Expect = same[n]
		}
		if err := f.write(filepath.Join(out, f.ID+".json")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		kept++
		steps += len(same)
	}
	fmt.Printf("%d of %d scenarios kept, %d steps\n", kept, *count, steps)
	return 0
}
