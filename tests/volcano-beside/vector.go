// The scenario files of tests/vectors: only what the format names.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type resources map[string]string

type file struct {
	ID          string           `json:"id"`
	Title       string           `json:"title"`
	Strictness  string           `json:"strictness"`
	DerivedFrom json.RawMessage  `json:"derived_from,omitempty"`
	Why         string           `json:"why,omitempty"`
	Config      config           `json:"config"`
	Classes     map[string]int32 `json:"priority_classes,omitempty"`
	Nodes       []node           `json:"nodes"`
	Queues      []queue          `json:"queues"`
	Steps       []step           `json:"steps"`
}

type config struct {
	Actions        []string                   `json:"actions"`
	Tiers          [][]map[string]interface{} `json:"tiers"`
	Configurations []map[string]interface{}   `json:"configurations,omitempty"`
}

type node struct {
	Name        string            `json:"name"`
	Allocatable resources         `json:"allocatable"`
	Labels      map[string]string `json:"labels,omitempty"`
}

type queue struct {
	Name        string    `json:"name"`
	Weight      *int32    `json:"weight,omitempty"`
	Capability  resources `json:"capability,omitempty"`
	Deserved    resources `json:"deserved,omitempty"`
	Guarantee   resources `json:"guarantee,omitempty"`
	Reclaimable *bool     `json:"reclaimable,omitempty"`
	Priority    int32     `json:"priority,omitempty"`
	Parent      string    `json:"parent,omitempty"`
	State       string    `json:"state,omitempty"`
	// The annotations of hierarchical DRF.
	Hierarchy        string `json:"hierarchy,omitempty"`
	HierarchyWeights string `json:"hierarchy_weights,omitempty"`
}

type step struct {
	At     int64  `json:"at"`
	Do     []op   `json:"do"`
	Expect expect `json:"expect"`
}

// One operation; which fields count depends on Op.
type op struct {
	Op             string           `json:"op"`
	Name           string           `json:"name,omitempty"`
	Namespace      string           `json:"namespace,omitempty"`
	Group          string           `json:"group,omitempty"`
	Queue          string           `json:"queue,omitempty"`
	MinMember      *int32           `json:"min_member,omitempty"`
	MinTaskMember  map[string]int32 `json:"min_task_member,omitempty"`
	MinResources   *resources       `json:"min_resources,omitempty"`
	PriorityClass  string           `json:"priority_class,omitempty"`
	SLAWaitingTime string           `json:"sla_waiting_time,omitempty"`
	Tasks          []task           `json:"tasks,omitempty"`
	Node           json.RawMessage  `json:"node,omitempty"`
	State          string           `json:"state,omitempty"`
	Reclaimable    *bool            `json:"reclaimable,omitempty"`
}

type task struct {
	Role             string            `json:"role"`
	Replicas         *int              `json:"replicas,omitempty"`
	Requests         resources         `json:"requests"`
	Priority         int32             `json:"priority,omitempty"`
	Preemptable      *bool             `json:"preemptable,omitempty"`
	PreemptionPolicy string            `json:"preemption_policy,omitempty"`
	NodeSelector     map[string]string `json:"node_selector,omitempty"`
}

type expect struct {
	Groups      map[string]groupExpect    `json:"groups"`
	Evicted     map[string]int            `json:"evicted,omitempty"`
	EvictedPods []string                  `json:"evicted_pods,omitempty"`
	Placement   map[string]map[string]int `json:"placement,omitempty"`
}

type groupExpect struct {
	State   string `json:"state,omitempty"`
	Running int    `json:"running"`
	Pending int    `json:"pending"`
	Phase   string `json:"phase,omitempty"`
}

// Quantities may be written as numbers.
func (r *resources) UnmarshalJSON(text []byte) error {
	var raw map[string]interface{}
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*r = resources{}
	for k, v := range raw {
		(*r)[k] = fmt.Sprint(v)
	}
	return nil
}

func readFile(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{}
	return f, json.Unmarshal(text, f)
}

func (f *file) write(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Volcano's own configuration text; JSON is YAML. Without nodeorder the choice between equal nodes is left to chance.
func (c *config) text(nodeorder bool) string {
	tiers := []map[string]interface{}{}
	for _, t := range c.Tiers {
		plugins := []map[string]interface{}{}
		for _, p := range t {
			if p["name"] != "nodeorder" || nodeorder {
				plugins = append(plugins, p)
			}
		}
		tiers = append(tiers, map[string]interface{}{"plugins": plugins})
	}
	text, err := json.Marshal(map[string]interface{}{
		"actions": strings.Join(c.Actions, ", "), "tiers": tiers, "configurations": c.Configurations})
	if err != nil {
		panic(err)
	}
	return string(text)
}
