// The cluster of a scenario as Volcano's cache sees it, and the run model of the scenario format.
package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand"
	"sort"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	scheme "volcano.sh/apis/pkg/apis/scheduling/scheme"
	vcv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	nodeshardv1alpha1 "volcano.sh/apis/pkg/apis/shard/v1alpha1"

	"volcano.sh/volcano/pkg/scheduler"
	"volcano.sh/volcano/pkg/scheduler/actions/allocate"
	"volcano.sh/volcano/pkg/scheduler/actions/backfill"
	"volcano.sh/volcano/pkg/scheduler/actions/enqueue"
	"volcano.sh/volcano/pkg/scheduler/actions/gangpreempt"
	"volcano.sh/volcano/pkg/scheduler/actions/gangreclaim"
	"volcano.sh/volcano/pkg/scheduler/actions/preempt"
	"volcano.sh/volcano/pkg/scheduler/actions/reclaim"
	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/cache"
	"volcano.sh/volcano/pkg/scheduler/conf"
	"volcano.sh/volcano/pkg/scheduler/framework"
	"volcano.sh/volcano/pkg/scheduler/metrics"
	_ "volcano.sh/volcano/pkg/scheduler/plugins"
)

const mostCycles = 60

type member struct {
	pod       *v1.Pod
	stamp     int64 // Microseconds since the start.
	created   bool
	running   bool
	succeeded bool
}

type group struct {
	name      string
	pg        *vcv1beta1.PodGroup
	stamp     int64
	members   []*member
	completed bool
}

type world struct {
	file       *file
	podsAtOnce bool
	tell       bool
	shuffle    *rand.Rand
	actions    []framework.Action
	tiers      []conf.Tier
	configs    []conf.Configuration

	ties    *ties
	tieSeed int64
	nodes   []*v1.Node
	queues  []*vcv1beta1.Queue
	stamps  map[string]int64 // of queues
	groups  []*group
	at      int64
	ticks   int64
	uids    int
	evicted map[string]int
	pods    map[string]bool // evicted

	mutex     sync.Mutex
	nominated map[string]string
	phases    map[string]vcv1beta1.PodGroupStatus
}

// One for the process: every cache starts workers that cannot be ended. Its contents are replaced before each session.
var shared *cache.SchedulerCache

type writer struct{ w *world }

func (s *writer) UpdatePodStatus(pod *v1.Pod) (*v1.Pod, error) {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	if pod.Status.NominatedNodeName != "" {
		s.w.nominated[pod.Namespace+"/"+pod.Name] = pod.Status.NominatedNodeName
	}
	return pod, nil
}

func (s *writer) UpdatePodGroup(pg *api.PodGroup) (*api.PodGroup, error) {
	out := &vcv1beta1.PodGroup{}
	if err := scheme.Scheme.Convert(&pg.PodGroup, out, nil); err != nil {
		return nil, err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	s.w.phases[pg.Namespace+"/"+pg.Name] = out.Status
	return pg, nil
}

func (s *writer) UpdateQueueStatus(*api.QueueInfo) error { return nil }
func (s *writer) UpdateNodeShardStatus(n *nodeshardv1alpha1.NodeShard) (*nodeshardv1alpha1.NodeShard, error) {
	return n, nil
}
func (s *writer) Evict(*v1.Pod, string) error { return nil }

func list(r resources) v1.ResourceList {
	out := v1.ResourceList{}
	for k, v := range r {
		out[v1.ResourceName(k)] = resource.MustParse(v)
	}
	return out
}

// Between nodes that are equally good Volcano draws lots; in some runs a fixed order of the nodes decides instead.
type ties struct{ order map[string]float64 }

func (t *ties) Name() string { return "ties" }
func (t *ties) OnSessionOpen(ssn *framework.Session) {
	ssn.AddNodeOrderFn(t.Name(), func(_ *api.TaskInfo, n *api.NodeInfo) (float64, error) { return t.order[n.Name] * 1e-6, nil })
}
func (t *ties) OnSessionClose(*framework.Session) {}

// Seed 0 prefers nodes in the order of the file, 1 in its reverse, others in an order of their own.
func (t *ties) arrange(nodes []*v1.Node, seed int64) {
	t.order = map[string]float64{}
	for i, n := range nodes {
		h := fnv.New32a()
		fmt.Fprint(h, n.Name, seed)
		t.order[n.Name] = float64(h.Sum32()) / (1 << 32)
		if seed < 2 {
			t.order[n.Name] = float64(i) * float64(2*seed-1)
		}
	}
}

func newWorld(f *file, podsAtOnce, nodeorder bool, seed int64) (*world, error) {
	w := &world{file: f, podsAtOnce: podsAtOnce, shuffle: rand.New(rand.NewSource(seed)), stamps: map[string]int64{}}
	// Actions remember arguments: fresh ones for every run.
	framework.RegisterAction(reclaim.New())
	framework.RegisterAction(allocate.New())
	framework.RegisterAction(backfill.New())
	framework.RegisterAction(preempt.New())
	framework.RegisterAction(gangpreempt.New())
	framework.RegisterAction(gangreclaim.New())
	framework.RegisterAction(enqueue.New())
	var err error
	w.actions, w.tiers, w.configs, _, err = scheduler.UnmarshalSchedulerConf(f.Config.text(nodeorder))
	if err != nil {
		return nil, err
	}
	if seed%3 == 0 { // Pods at once and later alike.
		w.ties, w.tieSeed = &ties{}, seed/6
		framework.RegisterPluginBuilder("ties", func(framework.Arguments) framework.Plugin { return w.ties })
		yes := true
		w.tiers = append(w.tiers, conf.Tier{Plugins: []conf.PluginOption{{Name: "ties", EnabledNodeOrder: &yes}}})
	}
	for _, n := range f.Nodes {
		w.addNode(n)
	}
	for _, q := range f.Queues {
		w.addQueue(q)
	}
	return w, nil
}

func (w *world) stamp() int64 {
	w.ticks++
	return w.at*1_000_000 + w.ticks
}

func (w *world) addNode(n node) {
	labels := map[string]string{"kubernetes.io/hostname": n.Name}
	for k, v := range n.Labels {
		labels[k] = v
	}
	w.nodes = append(w.nodes, &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID(n.Name), Labels: labels},
		Status: v1.NodeStatus{Allocatable: list(n.Allocatable), Capacity: list(n.Allocatable),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}})
}

func (w *world) addQueue(q queue) {
	yes := true
	out := &vcv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: q.Name, UID: types.UID(q.Name)},
		Spec:   vcv1beta1.QueueSpec{Weight: 1, Reclaimable: &yes, Priority: q.Priority, Parent: q.Parent},
		Status: vcv1beta1.QueueStatus{State: vcv1beta1.QueueStateOpen}}
	if q.Weight != nil {
		out.Spec.Weight = *q.Weight
	}
	if q.Reclaimable != nil {
		out.Spec.Reclaimable = q.Reclaimable
	}
	if q.Capability != nil {
		out.Spec.Capability = list(q.Capability)
	}
	if q.Deserved != nil {
		out.Spec.Deserved = list(q.Deserved)
	}
	if q.Guarantee != nil {
		out.Spec.Guarantee = vcv1beta1.Guarantee{Resource: list(q.Guarantee)}
	}
	if q.Hierarchy != "" {
		out.Annotations = map[string]string{vcv1beta1.KubeHierarchyAnnotationKey: q.Hierarchy, vcv1beta1.KubeHierarchyWeightAnnotationKey: q.HierarchyWeights}
	}
	if q.State != "" {
		out.Status.State = vcv1beta1.QueueState(q.State)
	}
	// The queue controller gives everybody but the root a parent.
	if q.Name != "root" && q.Parent == "" {
		out.Spec.Parent = "root"
	}
	w.stamps[q.Name] = w.stamp()
	w.queues = append(w.queues, out)
}

func (w *world) find(name string) *group {
	for _, g := range w.groups {
		if g.name == name {
			return g
		}
	}
	return nil
}

func (w *world) apply(o op) error {
	switch o.Op {
	case "create_group":
		w.createGroup(o)
	case "complete_group":
		g := w.find(o.Group)
		if g == nil {
			return fmt.Errorf("no group %s", o.Group)
		}
		g.completed = true
		kept := []*member{}
		for _, m := range g.members {
			if m.running {
				m.running, m.succeeded = false, true
				m.pod.Status.Phase = v1.PodSucceeded
			}
			if m.succeeded {
				kept = append(kept, m)
			}
		}
		g.members = kept
	case "delete_group":
		kept := []*group{}
		for _, g := range w.groups {
			if g.name != o.Group {
				kept = append(kept, g)
			}
		}
		w.groups = kept
	case "add_node":
		n := node{}
		if err := json.Unmarshal(o.Node, &n); err != nil {
			return err
		}
		w.addNode(n)
	case "remove_node":
		name := ""
		if err := json.Unmarshal(o.Node, &name); err != nil {
			return err
		}
		kept := []*v1.Node{}
		for _, n := range w.nodes {
			if n.Name != name {
				kept = append(kept, n)
			}
		}
		w.nodes = kept
		for _, g := range w.groups {
			for _, m := range g.members {
				if m.running && m.pod.Spec.NodeName == name {
					w.createPod(m)
				}
			}
		}
	case "set_queue":
		for _, q := range w.queues {
			if q.Name != o.Queue {
				continue
			}
			if o.State != "" {
				q.Status.State = vcv1beta1.QueueState(o.State)
			}
			if o.Reclaimable != nil {
				q.Spec.Reclaimable = o.Reclaimable
			}
		}
	default:
		return fmt.Errorf("operation %s", o.Op)
	}
	return nil
}

func (w *world) createGroup(o op) {
	ns := o.Namespace
	if ns == "" {
		ns = "default"
	}
	pg := &vcv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: ns, UID: types.UID("group-" + o.Name), Annotations: map[string]string{}},
		Spec:   vcv1beta1.PodGroupSpec{MinMember: 1, Queue: o.Queue, MinTaskMember: o.MinTaskMember, PriorityClassName: o.PriorityClass},
		Status: vcv1beta1.PodGroupStatus{Phase: vcv1beta1.PodGroupPending}}
	if o.Queue == "" {
		pg.Spec.Queue = "default"
	}
	if o.MinMember != nil {
		pg.Spec.MinMember = *o.MinMember
	}
	if o.MinResources != nil {
		r := list(*o.MinResources)
		pg.Spec.MinResources = &r
	}
	if o.SLAWaitingTime != "" {
		pg.Annotations["volcano.sh/sla-waiting-time"] = o.SLAWaitingTime
	}
	g := &group{name: o.Name, pg: pg, stamp: w.stamp()}
	for _, t := range o.Tasks {
		replicas := 1
		if t.Replicas != nil {
			replicas = *t.Replicas
		}
		for i := 0; i < replicas; i++ {
			preemptable := "true"
			if t.Preemptable != nil && !*t.Preemptable {
				preemptable = "false"
			}
			priority := t.Priority
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", o.Name, t.Role, i), Namespace: ns,
				Labels: map[string]string{"group": o.Name},
				Annotations: map[string]string{vcv1beta1.KubeGroupNameAnnotationKey: o.Name, "volcano.sh/task-spec": t.Role,
					"volcano.sh/preemptable": preemptable}},
				Spec: v1.PodSpec{SchedulerName: "volcano", Priority: &priority, PriorityClassName: o.PriorityClass, NodeSelector: t.NodeSelector,
					Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list(t.Requests)}}}}}
			if t.PreemptionPolicy != "" {
				policy := v1.PreemptionPolicy(t.PreemptionPolicy)
				pod.Spec.PreemptionPolicy = &policy
			}
			g.members = append(g.members, &member{pod: pod})
		}
	}
	w.groups = append(w.groups, g)
	if w.podsAtOnce {
		for _, m := range g.members {
			w.createPod(m)
		}
	}
}

// A fresh pod of the same name, as its owner makes it.
func (w *world) createPod(m *member) {
	w.uids++
	m.pod = m.pod.DeepCopy()
	m.pod.UID = types.UID(fmt.Sprintf("uid-%05d", w.uids))
	m.pod.Spec.NodeName = ""
	m.pod.Status = v1.PodStatus{Phase: v1.PodPending}
	m.stamp = w.stamp()
	m.created, m.running = true, false
}

func (w *world) fill() {
	c := shared
	c.Jobs = map[api.JobID]*api.JobInfo{}
	c.Nodes = map[string]*api.NodeInfo{}
	c.Queues = map[api.QueueID]*api.QueueInfo{}
	c.PriorityClasses = map[string]*schedulingv1.PriorityClass{}
	c.NodeList = nil
	// The moment of the session is half a second into the step.
	now := time.Now()
	when := func(stamp int64) metav1.Time {
		return metav1.NewTime(now.Add(-time.Duration(w.at*1_000_000+500_000-stamp) * time.Microsecond))
	}
	for _, i := range w.shuffle.Perm(len(w.nodes)) {
		_ = c.AddOrUpdateNode(w.nodes[i].DeepCopy())
	}
	for _, q := range w.queues {
		out := q.DeepCopy()
		out.CreationTimestamp = when(w.stamps[q.Name])
		c.AddQueueV1beta1(out)
	}
	for name, value := range w.file.Classes {
		c.AddPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	for _, g := range w.groups {
		out := g.pg.DeepCopy()
		out.CreationTimestamp = when(g.stamp)
		c.AddPodGroupV1beta1(out)
		for _, m := range g.members {
			if !m.created {
				continue
			}
			pod := m.pod.DeepCopy()
			pod.CreationTimestamp = when(m.stamp)
			start := pod.CreationTimestamp
			pod.Status.StartTime = &start
			c.AddPod(pod)
		}
	}
}

// One session. Says whether anything changed.
func (w *world) cycle() bool {
	w.nominated = map[string]string{}
	w.phases = map[string]vcv1beta1.PodGroupStatus{}
	if shared == nil {
		metrics.InitKubeSchedulerRelatedMetrics()
		shared = cache.NewCustomMockSchedulerCache("volcano", nil, &writer{w}, &writer{w}, nil, &record.FakeRecorder{})
	}
	shared.StatusUpdater = &writer{w}
	w.fill()
	conf.EnabledActionMap = map[string]bool{}
	for _, a := range w.actions {
		conf.EnabledActionMap[a.Name()] = true
	}
	if w.ties != nil {
		w.ties.arrange(w.nodes, w.tieSeed)
	}
	ssn := framework.OpenSession(shared, w.tiers, w.configs)
	for _, a := range w.actions {
		a.Initialize()
		a.Execute(ssn)
		a.UnInitialize()
	}
	bound, gone := map[string]string{}, map[string]bool{}
	for _, job := range ssn.Jobs {
		for _, t := range job.Tasks {
			if t.Status == api.Binding {
				bound[t.Namespace+"/"+t.Name] = t.NodeName
			}
			if t.Status == api.Releasing {
				gone[t.Namespace+"/"+t.Name] = true
			}
		}
	}
	framework.CloseSession(ssn)
	for len(shared.BindFlowChannel) > 0 {
		<-shared.BindFlowChannel
	}
	return w.carryOut(bound, gone)
}

func (w *world) carryOut(bound map[string]string, gone map[string]bool) bool {
	changed := false
	for _, g := range w.groups {
		key := g.pg.Namespace + "/" + g.pg.Name
		if status, ok := w.phases[key]; ok {
			changed = changed || status.Phase != g.pg.Status.Phase
			g.pg.Status = status
		}
		for _, m := range g.members {
			pod := m.pod.Namespace + "/" + m.pod.Name
			if !m.created {
				if g.pg.Status.Phase != vcv1beta1.PodGroupPending && !g.completed {
					w.createPod(m)
					changed = true
				}
				continue
			}
			if node, ok := bound[pod]; ok && !m.running {
				m.running, changed = true, true
				m.pod.Spec.NodeName = node
				m.pod.Status = v1.PodStatus{Phase: v1.PodRunning}
			} else if gone[pod] && m.running {
				changed = true
				w.evicted[g.name]++
				w.pods[m.pod.Name] = true
				w.createPod(m)
			} else if node, ok := w.nominated[pod]; ok && !m.running {
				m.pod.Status.NominatedNodeName = node
			}
		}
	}
	return changed
}

// What a step came to, in the words of the format. Settled: two cycles changed nothing.
func (w *world) step(s step) (expect, bool, error) {
	w.at = s.At
	w.evicted = map[string]int{}
	w.pods = map[string]bool{}
	for _, o := range s.Do {
		if err := w.apply(o); err != nil {
			return expect{}, false, err
		}
	}
	quiet := 0
	for i := 0; i < mostCycles && quiet < 2; i++ {
		changed := w.cycle()
		if w.tell {
			text, _ := json.Marshal(w.result())
			fmt.Printf("at %d, pods at once %v, cycle %d: %s\n", w.at, w.podsAtOnce, i, text)
		}
		if changed {
			quiet = 0
		} else {
			quiet++
		}
	}
	return w.result(), quiet >= 2, nil
}

func (w *world) result() expect {
	out := expect{Groups: map[string]groupExpect{}, Evicted: w.evicted, Placement: map[string]map[string]int{}}
	for _, g := range w.groups {
		e := groupExpect{Phase: string(g.pg.Status.Phase)}
		succeeded := 0
		where := map[string]int{}
		for _, m := range g.members {
			if m.running {
				e.Running++
				where[m.pod.Spec.NodeName]++
			} else if m.succeeded {
				succeeded++
			} else {
				e.Pending++
			}
		}
		switch {
		case e.Running == 0 && e.Pending == 0:
			e.State = "completed"
		case e.Running == 0:
			e.State = "waiting"
		case e.Running+succeeded >= int(g.pg.Spec.MinMember):
			e.State = "running"
		default:
			e.State = "degraded"
		}
		out.Groups[g.name] = e
		if e.Running > 0 {
			out.Placement[g.name] = where
		}
	}
	for pod := range w.pods {
		out.EvictedPods = append(out.EvictedPods, pod)
	}
	sort.Strings(out.EvictedPods)
	return out
}
