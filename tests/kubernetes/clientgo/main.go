// Clientgo drives one API server with client-go as controllers do: typed (protobuf), dynamic and metadata informers, patches,
// server-side apply, watch restarts, leader election. It prints a line for each check and closes with `N passed, N failed`.
//
//	clientgo KUBECONFIG
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

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

// seen collects what an informer reports: the last state of each object and whether it is deleted.
type seen struct {
	mutex  sync.Mutex
	events []string
}

func (s *seen) add(kind, name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.events = append(s.events, kind+" "+name)
}

func (s *seen) wait(want string) error {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		s.mutex.Lock()
		for _, event := range s.events {
			if event == want {
				s.mutex.Unlock()
				return nil
			}
		}
		s.mutex.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("informer never said %q, only %v", want, s.events)
}

func (s *seen) handlers() cache.ResourceEventHandlerFuncs {
	name := func(object any) string {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		return object.(metav1.Object).GetName()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.add("add", name(object)) },
		UpdateFunc: func(_, object any) { s.add("update", name(object)) },
		DeleteFunc: func(object any) { s.add("delete", name(object)) },
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clientgo KUBECONFIG")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config.QPS, config.Burst = 1000, 1000
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(config)
	ns := "clientgo"
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	check("create a namespace (protobuf)", err)
	// The default service account appears a moment later; pods need it.
	for i := 0; i < 200; i++ {
		if _, err = client.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	check("the default service account appears", err)

	informersOf(ctx, config, client, ns)
	storm(ctx, client, ns)
	writes(ctx, client, ns)
	election(ctx, client, ns)
	check("delete the namespace", client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}))
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func informersOf(ctx context.Context, config *rest.Config, client kubernetes.Interface, ns string) {
	typed, untyped, meta := &seen{}, &seen{}, &seen{}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
	factory.Core().V1().ConfigMaps().Informer().AddEventHandler(typed.handlers())
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	dyn := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0, ns, nil)
	dyn.ForResource(configMaps).Informer().AddEventHandler(untyped.handlers())
	metaFactory := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(config), 0, ns, nil)
	metaFactory.ForResource(configMaps).Informer().AddEventHandler(meta.handlers())
	begin := time.Now()
	factory.Start(ctx.Done())
	dyn.Start(ctx.Done())
	metaFactory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	dyn.WaitForCacheSync(ctx.Done())
	metaFactory.WaitForCacheSync(ctx.Done())
	var late error
	if took := time.Since(begin); took > 5*time.Second {
		late = fmt.Errorf("took %v", took)
	}
	check("typed, dynamic and metadata informers sync", late)

	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}, Data: map[string]string{"a": "1"}}
	made, err := client.CoreV1().ConfigMaps(ns).Create(ctx, object, metav1.CreateOptions{})
	check("create (protobuf)", err)
	made.Data["a"] = "2"
	updated, err := client.CoreV1().ConfigMaps(ns).Update(ctx, made, metav1.UpdateOptions{})
	check("update (protobuf)", err)
	_, err = client.CoreV1().ConfigMaps(ns).Update(ctx, made, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		check("a stale update conflicts", fmt.Errorf("got %v", err))
	} else {
		check("a stale update conflicts", nil)
	}
	same, err := client.CoreV1().ConfigMaps(ns).Update(ctx, updated, metav1.UpdateOptions{})
	if err == nil && same.ResourceVersion != updated.ResourceVersion {
		err = fmt.Errorf("version went from %s to %s", updated.ResourceVersion, same.ResourceVersion)
	}
	check("a write that changes nothing keeps the version", err)
	check("delete (protobuf options)", client.CoreV1().ConfigMaps(ns).Delete(ctx, "seen", metav1.DeleteOptions{}))
	for name, one := range map[string]*seen{"typed": typed, "dynamic": untyped, "metadata": meta} {
		for _, want := range []string{"add seen", "update seen", "delete seen"} {
			check(name+" informer: "+want, one.wait(want))
		}
	}
}

// storm: an informer under many concurrent writes ends with exactly the final states.
func storm(ctx context.Context, client kubernetes.Interface, ns string) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
	lister := factory.Core().V1().Secrets().Lister()
	factory.Core().V1().Secrets().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var group sync.WaitGroup
	errors := make(chan error, 64)
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 40; i++ {
				name := fmt.Sprintf("s-%d-%d", worker, i)
				made, err := client.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"v": "1"}}, metav1.CreateOptions{})
				if err == nil {
					made.Data = map[string][]byte{"v": []byte("2")}
					_, err = client.CoreV1().Secrets(ns).Update(ctx, made, metav1.UpdateOptions{})
				}
				if err == nil && i%2 == 0 {
					err = client.CoreV1().Secrets(ns).Delete(ctx, name, metav1.DeleteOptions{})
				}
				if err != nil {
					errors <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(errors)
	check("320 creates, updates and deletes from 8 clients", <-errors)
	var err error
	for i := 0; i < 200; i++ {
		all, _ := lister.Secrets(ns).List(labels.Everything())
		var names []string
		err = nil
		for _, one := range all {
			names = append(names, one.Name)
			if string(one.Data["v"]) != "2" {
				err = fmt.Errorf("%s is stale", one.Name)
			}
		}
		sort.Strings(names)
		if len(names) != 160 {
			err = fmt.Errorf("informer holds %d secrets, want 160", len(names))
		}
		if err == nil {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	check("the informer ends with every final state", err)
}

func writes(ctx context.Context, client kubernetes.Interface, ns string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}, Spec: corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}}}
	made, err := client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
	check("create a pod", err)
	if err != nil {
		return
	}
	made.Status.Phase = corev1.PodRunning
	_, err = client.CoreV1().Pods(ns).UpdateStatus(ctx, made, metav1.UpdateOptions{})
	check("update its status", err)
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{"x": "y"}}})
	patched, err := client.CoreV1().Pods(ns).Patch(ctx, made.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil && (patched.Labels["x"] != "y" || patched.Status.Phase != corev1.PodRunning) {
		err = fmt.Errorf("got labels %v, phase %s", patched.Labels, patched.Status.Phase)
	}
	check("strategic merge patch", err)
	_, err = client.CoreV1().ConfigMaps(ns).Apply(ctx, applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "1"}), metav1.ApplyOptions{FieldManager: "one"})
	check("server-side apply creates", err)
	_, err = client.CoreV1().ConfigMaps(ns).Apply(ctx, applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) {
		check("server-side apply conflicts", fmt.Errorf("got %v", err))
	} else {
		check("server-side apply conflicts", nil)
	}
	one := int32(1)
	_, err = client.BatchV1().Jobs(ns).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: batchv1.JobSpec{Parallelism: &one,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "b"}}}}}}, metav1.CreateOptions{})
	check("create a Job", err)
	list, err := client.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{Limit: 7})
	count := len(list.Items)
	for err == nil && list.Continue != "" {
		list, err = client.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{Limit: 7, Continue: list.Continue})
		if err == nil {
			count += len(list.Items)
		}
	}
	if err == nil && count != 160 {
		err = fmt.Errorf("pages held %d of 160", count)
	}
	check("paging", err)
	grace := int64(0)
	check("delete the pod at once", client.CoreV1().Pods(ns).Delete(ctx, made.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	_, err = client.CoreV1().Pods(ns).Get(ctx, made.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		check("it is gone", fmt.Errorf("got %v", err))
	} else {
		check("it is gone", nil)
	}
}

func election(ctx context.Context, client kubernetes.Interface, ns string) {
	inner, cancel := context.WithCancel(ctx)
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "leader", Namespace: ns}, Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "me"}}
	led := make(chan bool, 1)
	go func() {
		time.Sleep(15 * time.Second)
		cancel()
	}()
	leaderelection.RunOrDie(inner, leaderelection.LeaderElectionConfig{Lock: lock, LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { led <- true; time.Sleep(1500 * time.Millisecond); cancel() }, OnStoppedLeading: func() {}}})
	var err error
	select {
	case <-led:
	default:
		err = fmt.Errorf("never became leader")
	}
	check("leader election acquires and renews", err)
	lease, err := client.CoordinationV1().Leases(ns).Get(ctx, "leader", metav1.GetOptions{})
	if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		err = fmt.Errorf("still held by %s", *lease.Spec.HolderIdentity)
	}
	check("and releases", err)
}
