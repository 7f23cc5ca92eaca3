// Package podcount is the original of examples/ported/podcount, for
// controller-runtime.
package podcount

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type counter struct{ client.Client }

func (r *counter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	set := &appsv1.ReplicaSet{}
	if err := r.Get(ctx, request.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(request.Namespace), client.MatchingLabels(set.Spec.Template.Labels)); err != nil {
		return ctrl.Result{}, err
	}
	count := fmt.Sprint(len(pods.Items))
	if set.Labels["pod-count"] == count {
		return ctrl.Result{}, nil
	}
	before := set.DeepCopy()
	metav1.SetMetaDataLabel(&set.ObjectMeta, "pod-count", count)
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, set, client.MergeFrom(before)))
}

// Run runs the controller until ctx ends.
func Run(ctx context.Context, config *rest.Config) error {
	manager, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&appsv1.ReplicaSet{}).
		Owns(&corev1.Pod{}).
		Complete(&counter{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
