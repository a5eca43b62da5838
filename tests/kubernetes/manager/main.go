// Manager is a controller as people write them with controller-runtime: a custom kind, a leader election, a reconciler that keeps a
// finalizer, an owned pod and a status (by PATCH and by PUT), both event recorders. It drives one API server and prints a line for each
// check; it closes with `N passed, N failed`.
//
//	manager KUBECONFIG
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "loom.example.com/tidy"

var loomKind = schema.GroupVersionKind{Group: "loom.example.com", Version: "v1", Kind: "Loom"}

var passed, failed int

func check(name string, err error) {
	if err == nil {
		passed++
		fmt.Printf("ok    %s\n", name)
	} else {
		failed++
		fmt.Printf("FAIL  %s: %v\n", name, err)
	}
}

func must(err error) {
	if err != nil {
		fmt.Printf("FAIL  set-up: %v\n0 passed, 1 failed\n", err)
		os.Exit(1)
	}
}

// until asks again and again, for what an informer of somebody else must see first.
func until(condition func() error) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := condition()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func loom() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(loomKind)
	return object
}

// reconciler gives each Loom a pod, a status in two steps, two events and, at its end, its finalizer back.
type reconciler struct {
	client.Client
	modern events.EventRecorder
	old    record.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := loom()
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !object.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(object, finalizer) {
			return ctrl.Result{}, r.Update(ctx, object)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(object, finalizer) {
		return ctrl.Result{}, r.Update(ctx, object)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: object.GetName() + "-pod", Namespace: object.GetNamespace()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, pod, func() error {
		if pod.CreationTimestamp.IsZero() {
			pod.Spec = corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "nginx"}}}
		}
		pod.Labels = map[string]string{"loom": object.GetName()}
		return controllerutil.SetControllerReference(object, pod, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	switch phase {
	case "":
		r.old.Event(object, corev1.EventTypeNormal, "Threaded", "the loom has its pod")
		before := object.DeepCopy()
		must(unstructured.SetNestedField(object.Object, "Threaded", "status", "phase"))
		return ctrl.Result{}, r.Status().Patch(ctx, object, client.MergeFrom(before))
	case "Threaded":
		r.modern.Eventf(object, pod, corev1.EventTypeNormal, "Weaving", "Weave", "the loom weaves with %s", pod.Name)
		must(unstructured.SetNestedField(object.Object, "Weaving", "status", "phase"))
		return ctrl.Result{}, r.Status().Update(ctx, object)
	}
	return ctrl.Result{}, nil
}

func definition() *apiextensions.CustomResourceDefinition {
	keep := true
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "looms.loom.example.com"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: loomKind.Group, Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "looms", Singular: "loom", Kind: "Loom", ListKind: "LoomList"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
			}},
		},
	}
}

func established(ctx context.Context, reader client.Client) error {
	return until(func() error {
		crd := &apiextensions.CustomResourceDefinition{}
		if err := reader.Get(ctx, client.ObjectKey{Name: "looms.loom.example.com"}, crd); err != nil {
			return err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("not established: %v", crd.Status.Conditions)
	})
}

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(apiextensions.AddToScheme(scheme))
	direct, err := client.New(config, client.Options{Scheme: scheme})
	must(err)
	must(direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "looms"}}))
	must(direct.Create(ctx, definition()))
	check("the custom kind is established", established(ctx, direct))

	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "loom-leader", LeaderElectionNamespace: "looms", LeaderElectionReleaseOnCancel: true,
	})
	must(err)
	worker := &reconciler{Client: manager.GetClient(), modern: manager.GetEventRecorder("loom"), old: manager.GetEventRecorderFor("loom-old")} //nolint:staticcheck // both are to be seen
	must(ctrl.NewControllerManagedBy(manager).For(loom()).Owns(&corev1.Pod{}).Complete(worker))
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	select {
	case <-manager.Elected():
		check("the manager is elected", nil)
	case <-time.After(60 * time.Second):
		check("the manager is elected", fmt.Errorf("not within a minute"))
	}
	observe(ctx, direct)
	end()
	select {
	case err := <-ended:
		check("the manager ends", err)
	case <-time.After(60 * time.Second):
		check("the manager ends", fmt.Errorf("not within a minute"))
	}
	lease := &coordinationv1.Lease{}
	must(direct.Get(ctx, client.ObjectKey{Namespace: "looms", Name: "loom-leader"}, lease))
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != "" {
		check("the lease is given back", fmt.Errorf("held by %v", lease.Spec.HolderIdentity))
	} else {
		check("the lease is given back", nil)
	}
	must(direct.Delete(ctx, definition()))
	must(direct.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "looms"}}))
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// observe makes a Loom, waits for what the reconciler does with it, and deletes it.
func observe(ctx context.Context, direct client.Client) {
	key := client.ObjectKey{Namespace: "looms", Name: "first"}
	object := loom()
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	must(direct.Create(ctx, object))
	check("status by PATCH, then by PUT", until(func() error {
		if err := direct.Get(ctx, key, object); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase != "Weaving" {
			return fmt.Errorf("phase is %q", phase)
		}
		return nil
	}))
	if object.GetGeneration() != 1 || !controllerutil.ContainsFinalizer(object, finalizer) {
		check("finalizer kept, generation still 1", fmt.Errorf("generation %d, finalizers %v", object.GetGeneration(), object.GetFinalizers()))
	} else {
		check("finalizer kept, generation still 1", nil)
	}
	pod := &corev1.Pod{}
	err := direct.Get(ctx, client.ObjectKey{Namespace: "looms", Name: "first-pod"}, pod)
	if err == nil && !metav1.IsControlledBy(pod, object) {
		err = fmt.Errorf("owners %v", pod.OwnerReferences)
	}
	check("an owned pod", err)
	check("an event of the old recorder", until(func() error {
		list := &corev1.EventList{}
		return firstEvent(direct.List(ctx, list, client.InNamespace("looms")), len(list.Items), func(i int) string { return list.Items[i].Reason + " " + list.Items[i].Message }, "Threaded the loom has its pod")
	}))
	check("an event of the new recorder", until(func() error {
		list := &eventsv1.EventList{}
		return firstEvent(direct.List(ctx, list, client.InNamespace("looms")), len(list.Items), func(i int) string { return list.Items[i].Reason + " " + list.Items[i].Note }, "Weaving the loom weaves with first-pod")
	}))
	must(direct.Delete(ctx, pod))
	check("a deleted pod is made again", until(func() error {
		fresh := &corev1.Pod{}
		if err := direct.Get(ctx, client.ObjectKeyFromObject(pod), fresh); err != nil {
			return err
		}
		if fresh.UID == pod.UID {
			return fmt.Errorf("still the old one")
		}
		return nil
	}))
	must(direct.Delete(ctx, object))
	check("deleted once the finalizer is gone", until(func() error {
		if err := direct.Get(ctx, key, loom()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %v", err)
		}
		return nil
	}))
}

// firstEvent is nil when the list came and one of its n texts is the wanted one.
func firstEvent(err error, n int, text func(int) string, want string) error {
	if err != nil {
		return err
	}
	var texts []string
	for i := range n {
		if text(i) == want {
			return nil
		}
		texts = append(texts, text(i))
	}
	return fmt.Errorf("only %s", strings.Join(texts, "; "))
}
