// Package ovens is the original of examples/ported/ovens, for controller-runtime.
package ovens

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "bakery.example.com/cold"

type baker struct{ client.Client }

func (b *baker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	oven := &Oven{}
	if err := b.Get(ctx, request.NamespacedName, oven); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !oven.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, b.letGo(ctx, oven)
	}
	if controllerutil.AddFinalizer(oven, finalizer) {
		return ctrl.Result{}, b.Update(ctx, oven)
	}
	owner := metav1ac.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("Oven").WithName(oven.Name).WithUID(oven.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	menu := corev1ac.ConfigMap(oven.Name, oven.Namespace).
		WithOwnerReferences(owner).
		WithData(map[string]string{"trays": fmt.Sprint(oven.Spec.Trays)})
	if err := b.Apply(ctx, menu, client.FieldOwner("baker"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	before := oven.DeepCopy()
	if !meta.SetStatusCondition(&oven.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Heated", Message: "the menu is written",
		ObservedGeneration: oven.Generation,
	}) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, b.Status().Patch(ctx, oven, client.MergeFrom(before))
}

// letGo deletes what belongs to an oven, and then lets the oven go.
func (b *baker) letGo(ctx context.Context, oven *Oven) error {
	menu := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: oven.Namespace, Name: oven.Name}}
	if err := client.IgnoreNotFound(b.Delete(ctx, menu)); err != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(oven, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(b.Update(ctx, oven))
}

// Run runs the controller until ctx ends.
func Run(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Oven{}).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Complete(&baker{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
