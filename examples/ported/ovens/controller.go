// Package ovens is a controller of a custom kind: each Oven gets a ConfigMap with
// its menu, a condition in its status, and a finalizer that cleans up. Its
// original, for controller-runtime, is in tests/peers/controllerruntime/ported.
package ovens

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/conditions"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/objectmeta"
)

const finalizer = "bakery.example.com/cold"

type baker struct {
	cached informer.Lister[*Oven]
	ovens  client.Resource[*Oven]
	menus  client.Resource[*corev1.ConfigMap]
}

func (b *baker) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	found, ok := b.cached.Get(key.Namespace, key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	oven := found.DeepCopy()
	if objectmeta.IsBeingDeleted(oven) {
		return controller.Result{}, b.letGo(ctx, oven)
	}
	if objectmeta.AddFinalizer(oven, finalizer) {
		_, err := b.ovens.Update(ctx, oven, metav1.UpdateOptions{})
		return controller.Result{}, err
	}
	menu := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: oven.Name, Namespace: oven.Namespace},
		Data:       map[string]string{"trays": fmt.Sprint(oven.Spec.Trays)},
	}
	if err := objectmeta.SetControllerReference(oven, menu, b.ovens.Client().Scheme()); err != nil {
		return controller.Result{}, err
	}
	if _, err := b.menus.Apply(ctx, menu, metav1.ApplyOptions{FieldManager: "baker", Force: true}); err != nil {
		return controller.Result{}, err
	}
	conditions.Set(oven, &oven.Status.Conditions, conditions.True("Ready", "Heated", "the menu is written"))
	_, err := b.ovens.MergePatchStatus(ctx, found, oven, client.MergePatchOptions{})
	return controller.Result{}, err
}

// letGo deletes what belongs to an oven, and then lets the oven go.
func (b *baker) letGo(ctx context.Context, oven *Oven) error {
	if err := client.IgnoreNotFound(b.menus.Namespace(oven.Namespace).Delete(ctx, oven.Name, metav1.DeleteOptions{})); err != nil {
		return err
	}
	if !objectmeta.RemoveFinalizer(oven, finalizer) {
		return nil
	}
	_, err := b.ovens.Update(ctx, oven, metav1.UpdateOptions{})
	return client.IgnoreNotFound(err)
}

// Run runs the controller until ctx ends. Oven must be registered.
func Run(ctx context.Context, cl *client.Client) error {
	factory := informer.NewFactory(cl, informer.Options{})
	ovens := informer.For[*Oven](factory, informer.ListOptions{})
	b := &baker{cached: ovens.Lister(), ovens: client.For[*Oven](cl), menus: client.For[*corev1.ConfigMap](cl)}
	c, err := controller.New(b.reconcile, controller.Options{Name: "baker"})
	if err != nil {
		return err
	}
	controller.For(c, ovens)
	controller.Owns[*Oven](c, informer.Metadata(factory, corev1.SchemeGroupVersion.WithResource("configmaps"), informer.ListOptions{}))
	return controller.Run(ctx, controller.RunOptions{Factory: factory}, c)
}
