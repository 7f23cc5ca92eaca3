// Package podcount is a controller of a built-in kind: each ReplicaSet gets a
// label with the number of its pods. Its original, for controller-runtime, is in
// tests/peers/controllerruntime/ported.
package podcount

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

type counter struct {
	sets informer.Lister[*appsv1.ReplicaSet]
	pods informer.Lister[*corev1.Pod]
	api  client.Resource[*appsv1.ReplicaSet]
}

func (r *counter) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	set, ok := r.sets.Get(key.Namespace, key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	pods := r.pods.List(key.Namespace, labels.SelectorFromSet(set.Spec.Template.Labels))
	changed := set.DeepCopy()
	metav1.SetMetaDataLabel(&changed.ObjectMeta, "pod-count", fmt.Sprint(len(pods)))
	_, err := r.api.MergePatch(ctx, set, changed, client.MergePatchOptions{}) // sends nothing if nothing has changed
	return controller.Result{}, client.IgnoreNotFound(err)
}

// Run runs the controller until ctx ends.
func Run(ctx context.Context, cl *client.Client) error {
	factory := informer.NewFactory(cl, informer.Options{})
	sets := informer.For[*appsv1.ReplicaSet](factory, informer.ListOptions{})
	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	r := &counter{sets: sets.Lister(), pods: pods.Lister(), api: client.For[*appsv1.ReplicaSet](cl)}
	c, err := controller.New(r.reconcile, controller.Options{Name: "podcount"})
	if err != nil {
		return err
	}
	controller.For(c, sets)
	controller.Owns[*appsv1.ReplicaSet](c, pods)
	return controller.Run(ctx, controller.RunOptions{Factory: factory}, c)
}
