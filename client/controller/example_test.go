package controller_test

import (
	"context"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// A controller that gives every namespace a ConfigMap: a function from a key to
// the state that is wanted, and what leads to keys.
func Example() {
	cl, err := client.FromKubeconfig("admin.kubeconfig", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(cl, informer.Options{})
	namespaces := informer.For[*corev1.Namespace](factory, informer.ListOptions{})
	configMaps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{FieldSelector: "metadata.name=welcome"})

	reconcile := func(ctx context.Context, key controller.Key) (controller.Result, error) {
		namespace, ok := namespaces.Lister().Get("", key.Name)
		if !ok || namespace.DeletionTimestamp != nil {
			return controller.Result{}, nil
		}
		if _, ok := configMaps.Lister().Get(key.Name, "welcome"); ok {
			return controller.Result{}, nil
		}
		welcome := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "welcome"}, Data: map[string]string{"text": "hello " + key.Name}}
		_, err := client.For[*corev1.ConfigMap](cl).Namespace(key.Name).Create(ctx, welcome, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) { // the cache may be behind
			return controller.Result{}, fmt.Errorf("welcome %s: %w", key.Name, err)
		}
		return controller.Result{}, nil
	}

	c, err := controller.New(reconcile, controller.Options{Name: "welcome", Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	controller.For(c, namespaces)
	controller.Watch(c, configMaps, func(cm *corev1.ConfigMap, add func(controller.Key)) {
		add(controller.Key{Name: cm.Namespace})
	})
	if err := controller.Run(context.Background(), controller.RunOptions{Factory: factory}, c); err != nil {
		log.Println(err)
	}
}

// One controller of the Deployments of several clusters. Its keys name the
// cluster.
func ExampleInCluster() {
	ctx := context.Background()
	factories := map[string]*informer.Factory{}
	for _, name := range []string{"east", "west"} {
		cl, err := client.FromKubeconfig(name+".kubeconfig", client.Options{})
		if err != nil {
			log.Fatal(err)
		}
		factories[name] = informer.NewFactory(cl, informer.Options{})
	}
	reconcile := func(ctx context.Context, key controller.ClusterKey) (controller.Result, error) {
		deployments := informer.For[*appsv1.Deployment](factories[key.Cluster], informer.ListOptions{})
		if deployment, ok := deployments.Lister().Get(key.Namespace, key.Name); ok {
			controller.Logger(ctx).Info("seen", "replicas", deployment.Status.Replicas) // with controller and key
		}
		return controller.Result{}, nil
	}
	c, err := controller.NewTyped(reconcile, controller.TypedOptions[controller.ClusterKey]{Name: "replicas"})
	if err != nil {
		log.Fatal(err)
	}
	var opts controller.RunOptions
	for name, factory := range factories {
		deployments := informer.For[*appsv1.Deployment](factory, informer.ListOptions{})
		controller.Watch(c, deployments, controller.InCluster(name, controller.EnqueueObject[*appsv1.Deployment]))
		opts.Factories = append(opts.Factories, factory)
	}
	if err := controller.Run(ctx, opts, c); err != nil {
		log.Println(err)
	}
}

// Deployments whose spec or labels change, unless others look after them. Within And, Or
// and Not one predicate says the type, and Go infers the rest.
func ExampleOr() {
	cl, err := client.FromKubeconfig("admin.kubeconfig", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(cl, informer.Options{})
	deployments := informer.For[*appsv1.Deployment](factory, informer.ListOptions{})
	reconcile := func(context.Context, controller.Key) (controller.Result, error) { return controller.Result{}, nil }
	c, err := controller.New(reconcile, controller.Options{Name: "web"})
	if err != nil {
		log.Fatal(err)
	}
	others := labels.SelectorFromSet(labels.Set{"managed-by": "others"})
	controller.For(c, deployments, // several: all of them must pass
		controller.Or(controller.GenerationChanged[*appsv1.Deployment], controller.LabelsChanged),
		controller.Not(controller.HasLabels[*appsv1.Deployment](others)),
		func(change controller.Change[*appsv1.Deployment]) bool {
			return change.Object.Namespace != "kube-system"
		})
	if err := controller.Run(context.Background(), controller.RunOptions{Factory: factory}, c); err != nil {
		log.Println(err)
	}
}
