package upstream

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// strategy is what happens to objects on their way to the storage: the status
// keeps out of ordinary writes, and everything is valid.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
)

func (s strategy) NamespaceScoped() bool                                                 { return s.namespaced }
func (s strategy) AllowCreateOnUpdate(context.Context) bool                              { return false }
func (s strategy) AllowUnconditionalUpdate(context.Context) bool                         { return true }
func (s strategy) Canonicalize(runtime.Object)                                           {}
func (s strategy) Validate(context.Context, runtime.Object) field.ErrorList              { return nil }
func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string             { return nil }
func (s strategy) ValidateUpdate(_ context.Context, _, _ runtime.Object) field.ErrorList { return nil }
func (s strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string      { return nil }

func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		obj.Generation = 1
		obj.Status = corev1.PodStatus{Phase: corev1.PodPending}
	case *appsv1.ReplicaSet:
		obj.Generation = 1
		obj.Status = appsv1.ReplicaSetStatus{}
	}
}

func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		before := old.(*corev1.Pod)
		obj.Status = before.Status
		obj.Generation = nextGeneration(before.Generation, obj.Spec, before.Spec)
	case *appsv1.ReplicaSet:
		before := old.(*appsv1.ReplicaSet)
		obj.Status = before.Status
		obj.Generation = nextGeneration(before.Generation, obj.Spec, before.Spec)
	}
}

func nextGeneration(generation int64, now, before any) int64 {
	if equality.Semantic.DeepEqual(now, before) {
		return generation
	}
	return generation + 1
}

// statusStrategy lets the status through and nothing else.
type statusStrategy struct{ strategy }

func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		before := old.(*corev1.Pod)
		obj.Spec, obj.Labels, obj.OwnerReferences = before.Spec, before.Labels, before.OwnerReferences
	case *appsv1.ReplicaSet:
		before := old.(*appsv1.ReplicaSet)
		obj.Spec, obj.Labels, obj.OwnerReferences = before.Spec, before.Labels, before.OwnerReferences
	}
}

// deletion returns how objects of a type end: pods gracefully, all others at
// once.
func deletion(typer runtime.ObjectTyper, obj runtime.Object) rest.RESTDeleteStrategy {
	if _, isPod := obj.(*corev1.Pod); isPod {
		return podDeletion{typer}
	}
	return typer
}

// podDeletion gives pods that are bound to a node the time they ask for.
type podDeletion struct{ runtime.ObjectTyper }

var _ rest.RESTGracefulDeleteStrategy = podDeletion{}

// CheckGracefulDelete implements rest.RESTGracefulDeleteStrategy.
func (podDeletion) CheckGracefulDelete(_ context.Context, obj runtime.Object, opts *metav1.DeleteOptions) bool {
	pod, ok := obj.(*corev1.Pod)
	if !ok || opts == nil {
		return false
	}
	period := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch {
	case opts.GracePeriodSeconds != nil:
		period = *opts.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.NodeName == "" || ended {
		period = 0
	}
	opts.GracePeriodSeconds = &period
	return true
}

// statusREST is the status subresource: reads and updates, nothing else.
type statusREST struct{ store *registry.Store }

var _ rest.Patcher = &statusREST{}

// New implements rest.Storage.
func (s *statusREST) New() runtime.Object { return s.store.New() }

// Destroy does nothing: the resource itself closes the storage that they share.
func (s *statusREST) Destroy() {}

// Get implements rest.Getter.
func (s *statusREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, opts)
}

// Update implements rest.Updater.
func (s *statusREST) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, opts *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, info, create, update, false, opts)
}
