package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/objectmeta"
)

// connect returns a client of the server that kubectl would talk to.
func connect() *client.Client {
	c, err := client.FromKubeconfig("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// An empty path is what a program takes whose -kubeconfig is not set: the configuration
// is looked for as kubectl does, and in a pod it is that of the service account.
func ExampleFromKubeconfig() {
	c, err := client.FromKubeconfig("", client.Options{ContentType: client.Protobuf})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Host())
}

// New takes a configuration that the program has made or changed: another context of the
// kubeconfig, another identity.
func ExampleNew() {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(),
		&clientcmd.ConfigOverrides{CurrentContext: "staging"}).ClientConfig()
	if err != nil {
		log.Fatal(err)
	}
	cfg.Impersonate.UserName = "jane"
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Host())
}

// Apply says which fields the program wants, and nothing of the others. A field that
// another program wants otherwise is a conflict, which names both.
func ExampleResource_Apply() {
	ctx := context.Background()
	deployments := client.For[*appsv1.Deployment](connect()).Namespace("default")
	replicas := int32(5)
	scaled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}

	_, err := deployments.Apply(ctx, scaled, metav1.ApplyOptions{FieldManager: "autoscaler"})
	if conflict, ok := errors.AsType[*client.ApplyConflictError](err); ok {
		for _, c := range conflict.Conflicts {
			fmt.Println(c.Field, "is owned by", c.Manager)
		}
		_, err = deployments.Apply(ctx, scaled, metav1.ApplyOptions{FieldManager: "autoscaler", Force: true}) // takes the field over
	}
	fmt.Println(err)
}

// MergePatch sends what the program has changed in an object, and nothing else.
func ExampleResource_MergePatch() {
	ctx := context.Background()
	configMaps := client.For[*corev1.ConfigMap](connect()).Namespace("default")
	old, err := configMaps.Get(ctx, "settings", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	changed := old.DeepCopy()
	objectmeta.AddFinalizer(changed, "example.com/paint")
	// The lock is for lists, which a merge patch replaces as a whole.
	_, err = configMaps.MergePatch(ctx, old, changed, client.MergePatchOptions{OptimisticLock: true})
	if apierrors.IsConflict(err) {
		fmt.Println("another client was faster: read it again")
	}
}

// UpdateWithRetry decides again on the new state when another write comes between.
func ExampleResource_UpdateWithRetry() {
	configMaps := client.For[*corev1.ConfigMap](connect()).Namespace("default")
	updated, err := configMaps.UpdateWithRetry(context.Background(), "settings", func(cm *corev1.ConfigMap) error {
		if cm.Data["color"] == "" {
			return errors.New("there is no color") // ends the call
		}
		cm.Data["color"] = "red"
		return nil
	})
	fmt.Println(updated, err)
}

// CreateOrUpdate sees to it that an object exists and is as wanted. What the function
// leaves alone stays as it is.
func ExampleResource_CreateOrUpdate() {
	configMaps := client.For[*corev1.ConfigMap](connect())
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	_, result, err := configMaps.CreateOrUpdate(context.Background(), settings, func(cm *corev1.ConfigMap) error {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data["color"] = "red"
		return nil
	})
	fmt.Println(result, err) // created, updated or unchanged
}

// All objects in one loop, of which a page at a time is in memory.
func ExampleResource_All() {
	for pod, err := range client.For[*corev1.Pod](connect()).All(context.Background(), metav1.ListOptions{LabelSelector: "app=web"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pod.Namespace, pod.Name)
	}
}
