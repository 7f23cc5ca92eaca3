// Package confighash is a controller of two kinds: a Deployment with the
// annotation "config" is rolled out again when the ConfigMap of that name changes.
// It uses an index, and keys from another kind. Its original, for
// controller-runtime, is in tests/peers/controllerruntime/ported.
package confighash

import (
	"context"
	"crypto/sha256"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

type roller struct {
	deployments informer.Lister[*appsv1.Deployment]
	configs     informer.Lister[*corev1.ConfigMap]
	api         client.Resource[*appsv1.Deployment]
}

func (r *roller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	deployment, ok := r.deployments.Get(key.Namespace, key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	config, ok := r.configs.Get(key.Namespace, deployment.Annotations["config"])
	if !ok {
		return controller.Result{}, nil
	}
	changed := deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.Spec.Template.ObjectMeta, "config-hash", fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(config.Data)))))
	_, err := r.api.MergePatch(ctx, deployment, changed, client.MergePatchOptions{}) // sends nothing if nothing has changed
	return controller.Result{}, client.IgnoreNotFound(err)
}

// configKey is the ConfigMap that a Deployment names.
func configKey(d *appsv1.Deployment) ([]string, error) {
	if d.Annotations["config"] == "" {
		return nil, nil
	}
	return []string{d.Namespace + "/" + d.Annotations["config"]}, nil
}

// Run runs the controller until ctx ends.
func Run(ctx context.Context, cl *client.Client) error {
	factory := informer.NewFactory(cl, informer.Options{})
	deployments := informer.For[*appsv1.Deployment](factory, informer.ListOptions{})
	configs := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{})
	if err := deployments.AddIndexers(cache.Indexers[*appsv1.Deployment]{"config": configKey}); err != nil {
		return err
	}
	r := &roller{deployments: deployments.Lister(), configs: configs.Lister(), api: client.For[*appsv1.Deployment](cl)}
	c, err := controller.New(r.reconcile, controller.Options{Name: "confighash"})
	if err != nil {
		return err
	}
	controller.For(c, deployments)
	controller.Watch(c, configs, func(config *corev1.ConfigMap, add func(controller.Key)) {
		named, _ := r.deployments.ByIndex("config", config.Namespace+"/"+config.Name) // the index exists
		for _, d := range named {
			add(controller.KeyOf(d))
		}
	})
	return controller.Run(ctx, controller.RunOptions{Factory: factory}, c)
}
