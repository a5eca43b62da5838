// Asks the MPI operator's own defaulter and validator: one JSON object {job} a line in, one answer a line out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
)

type answer struct {
	Accepted      bool   `json:"accepted"`
	Error         string `json:"error,omitempty"`
	DefaultedSpec any    `json:"defaultedSpec,omitempty"`
}

func judge(line []byte) (result answer) {
	defer func() {
		if broken := recover(); broken != nil {
			result = answer{Error: fmt.Sprintf("panic: %v", broken)}
		}
	}()
	var asked struct {
		Job v2beta1.MPIJob `json:"job"`
	}
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: "decoding: " + err.Error()}
	}
	v2beta1.SetDefaults_MPIJob(&asked.Job)
	if errors := validation.ValidateMPIJob(&asked.Job); len(errors) > 0 {
		return answer{Error: errors.ToAggregate().Error()}
	}
	return answer{Accepted: true, DefaultedSpec: asked.Job.Spec}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		if err := out.Encode(judge(in.Bytes())); err != nil {
			panic(err)
		}
	}
}
