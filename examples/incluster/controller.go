package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// newController watches ConfigMaps with the label; the server leaves out the rest.
func newController(c *client.Client, factory *informer.Factory) (*controller.Controller, error) {
	configMaps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{LabelSelector: "greet"})
	reconcile := func(ctx context.Context, key controller.Key) (controller.Result, error) {
		found, ok := configMaps.Lister().Get(key.Namespace, key.Name)
		if !ok {
			return controller.Result{}, nil
		}
		text := "Hello, " + found.Labels["greet"] + "!"
		if found.Data["text"] == text {
			return controller.Result{}, nil
		}
		changed := found.DeepCopy() // what a lister returns is shared with the cache
		changed.Data = map[string]string{"text": text}
		// The resourceVersion guards the write: if another client was faster, the
		// update fails with a conflict, and the controller calls again.
		_, err := client.For[*corev1.ConfigMap](c).Update(ctx, changed, metav1.UpdateOptions{})
		return controller.Result{}, err
	}
	greeter, err := controller.New(reconcile, controller.Options{Name: "greeter", Workers: 2})
	if err != nil {
		return nil, err
	}
	controller.For(greeter, configMaps)
	return greeter, nil
}
