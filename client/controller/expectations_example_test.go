package controller_test

import (
	"context"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// A controller that makes pods until there are as many as a ReplicaSet wants. Its
// own creations are expected, so that it does not count while the informer does not
// have them, and Consistent keeps it from counting the pods of an older or newer state
// than the ReplicaSet's.
func ExampleExpectations() {
	cl, err := client.FromKubeconfig("admin.kubeconfig", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(cl, informer.Options{})
	sets := informer.For[*appsv1.ReplicaSet](factory, informer.ListOptions{})
	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	expectations := controller.NewExpectations()

	reconcile := func(ctx context.Context, key controller.Key) (controller.Result, error) {
		set, ok := sets.Lister().Get(key.Namespace, key.Name)
		if !ok {
			return controller.Result{}, nil
		}
		settled := expectations.Settled(key) // before the pods are read
		missing := int(*set.Spec.Replicas)
		for _, pod := range pods.Lister().List(key.Namespace, nil) {
			if metav1.IsControlledBy(pod, set) {
				missing--
			}
		}
		if !settled || missing <= 0 {
			return controller.Result{}, nil // a pod that comes calls again
		}
		if err := controller.Consistent(ctx, set); err != nil {
			return controller.Result{}, err
		}
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.GenerateName = set.Name + "-"
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		made, err := client.For[*corev1.Pod](cl).Namespace(key.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err == nil {
			expectations.ExpectCreated(key, made.Name, made.UID)
		}
		return controller.Result{}, err
	}

	c, err := controller.New(reconcile, controller.Options{Name: "pods"})
	if err != nil {
		log.Fatal(err)
	}
	controller.For(c, sets)
	addOwner := func(pod *corev1.Pod) {
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "ReplicaSet" {
			c.Add(controller.Key{Namespace: pod.Namespace, Name: owner.Name})
		}
	}
	// One handler for both, in this order: Owns has a goroutine of its own, so that a call could come
	// before its expectation is met, and none after it.
	controller.Handle(c, pods, informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) {
			expectations.Created(pod.UID)
			addOwner(pod)
		},
		Delete: func(pod *corev1.Pod, _ bool) {
			expectations.Observed(pod.UID)
			addOwner(pod)
		},
	})
	if err := controller.Run(context.Background(), controller.RunOptions{Factory: factory}, c); err != nil {
		log.Println(err)
	}
}
