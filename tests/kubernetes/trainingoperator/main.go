// Asks the training operator's own defaulters and validators: one JSON object {job, oldJob} a line in, one answer a line out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/webhooks/jax"
	paddle "github.com/kubeflow/training-operator/pkg/webhooks/paddlepaddle"
	"github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	tf "github.com/kubeflow/training-operator/pkg/webhooks/tensorflow"
	"github.com/kubeflow/training-operator/pkg/webhooks/xgboost"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type question struct {
	Job    json.RawMessage `json:"job"`
	OldJob json.RawMessage `json:"oldJob"`
}

type answer struct {
	Accepted      bool     `json:"accepted"`
	Error         string   `json:"error,omitempty"`
	Warnings      []string `json:"warnings,omitempty"`
	DefaultedSpec any      `json:"defaultedSpec,omitempty"`
}

type kind struct {
	make     func() runtime.Object
	webhook  admission.CustomValidator
	defaults func(runtime.Object)
	spec     func(runtime.Object) any
}

var kinds = map[string]kind{
	"PyTorchJob": {func() runtime.Object { return &v1.PyTorchJob{} }, &pytorch.Webhook{}, func(o runtime.Object) { v1.SetDefaults_PyTorchJob(o.(*v1.PyTorchJob)) },
		func(o runtime.Object) any { return o.(*v1.PyTorchJob).Spec }},
	"TFJob": {func() runtime.Object { return &v1.TFJob{} }, &tf.Webhook{}, func(o runtime.Object) { v1.SetDefaults_TFJob(o.(*v1.TFJob)) },
		func(o runtime.Object) any { return o.(*v1.TFJob).Spec }},
	"XGBoostJob": {func() runtime.Object { return &v1.XGBoostJob{} }, &xgboost.Webhook{}, func(o runtime.Object) { v1.SetDefaults_XGBoostJob(o.(*v1.XGBoostJob)) },
		func(o runtime.Object) any { return o.(*v1.XGBoostJob).Spec }},
	"PaddleJob": {func() runtime.Object { return &v1.PaddleJob{} }, &paddle.Webhook{}, func(o runtime.Object) { v1.SetDefaults_PaddleJob(o.(*v1.PaddleJob)) },
		func(o runtime.Object) any { return o.(*v1.PaddleJob).Spec }},
	"JAXJob": {func() runtime.Object { return &v1.JAXJob{} }, &jax.Webhook{}, func(o runtime.Object) { v1.SetDefaults_JAXJob(o.(*v1.JAXJob)) },
		func(o runtime.Object) any { return o.(*v1.JAXJob).Spec }},
	"MPIJob": {make: func() runtime.Object { return &v1.MPIJob{} }},
}

func judge(asked question) (result answer) {
	defer func() {
		if broken := recover(); broken != nil {
			result = answer{Error: fmt.Sprintf("panic: %v", broken)}
		}
	}()
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(asked.Job, &head); err != nil {
		return answer{Error: err.Error()}
	}
	kind := kinds[head.Kind]
	job, old := kind.make(), kind.make()
	if err := json.Unmarshal(asked.Job, job); err != nil {
		return answer{Error: "decoding: " + err.Error()}
	}
	if mpi, is := job.(*v1.MPIJob); is {
		if err := v1.ValidateV1MpiJobSpec(&mpi.Spec); err != nil {
			return answer{Error: err.Error()}
		}
		v1.SetDefaults_MPIJob(mpi)
		return answer{Accepted: true, DefaultedSpec: mpi.Spec}
	}
	var warnings admission.Warnings
	var err error
	if len(asked.OldJob) > 0 && string(asked.OldJob) != "null" {
		if err := json.Unmarshal(asked.OldJob, old); err != nil {
			return answer{Error: "decoding: " + err.Error()}
		}
		warnings, err = kind.webhook.ValidateUpdate(context.Background(), old, job)
	} else {
		warnings, err = kind.webhook.ValidateCreate(context.Background(), job)
	}
	if err != nil {
		return answer{Error: err.Error(), Warnings: warnings}
	}
	kind.defaults(job)
	return answer{Accepted: true, Warnings: warnings, DefaultedSpec: kind.spec(job)}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var asked question
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(judge(asked)); err != nil {
			panic(err)
		}
	}
}
