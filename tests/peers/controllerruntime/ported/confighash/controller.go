// Package confighash is the original of examples/ported/confighash, for
// controller-runtime.
package confighash

import (
	"context"
	"crypto/sha256"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type roller struct{ client.Client }

func (r *roller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, request.NamespacedName, deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if deployment.Annotations["config"] == "" {
		return ctrl.Result{}, nil
	}
	config := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: deployment.Annotations["config"]}, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(config.Data))))
	if deployment.Spec.Template.Annotations["config-hash"] == hash {
		return ctrl.Result{}, nil
	}
	before := deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, "config-hash", hash)
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, deployment, client.MergeFrom(before)))
}

// configName is the ConfigMap that a Deployment names.
func configName(obj client.Object) []string {
	if name := obj.GetAnnotations()["config"]; name != "" {
		return []string{name}
	}
	return nil
}

// deploymentsOf are the requests of a ConfigMap.
func (r *roller) deploymentsOf(ctx context.Context, config client.Object) []reconcile.Request {
	named := &appsv1.DeploymentList{}
	if err := r.List(ctx, named, client.InNamespace(config.GetNamespace()), client.MatchingFields{"config": config.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "list deployments")
		return nil
	}
	requests := make([]reconcile.Request, len(named.Items))
	for n := range named.Items {
		requests[n].NamespacedName = client.ObjectKeyFromObject(&named.Items[n])
	}
	return requests
}

// Run runs the controller until ctx ends.
func Run(ctx context.Context, config *rest.Config) error {
	manager, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return err
	}
	if err := manager.GetFieldIndexer().IndexField(ctx, &appsv1.Deployment{}, "config", configName); err != nil {
		return err
	}
	r := &roller{manager.GetClient()}
	err = ctrl.NewControllerManagedBy(manager).
		For(&appsv1.Deployment{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.deploymentsOf)).
		Complete(r)
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
