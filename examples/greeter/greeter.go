// Command greeter is a complete controller: every ConfigMap with the label
// "greet" gets a greeting for the name in the label. Run as many processes as you
// like: one leads, and another takes over when it ends.
//
//	greeter -kubeconfig levelwire-data/admin.kubeconfig
//	kubectl create configmap hello && kubectl label configmap hello greet=world
//	kubectl get configmap hello -o jsonpath={.data.text}
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// greeter brings ConfigMaps to their desired state.
type greeter struct {
	configMaps client.Resource[*corev1.ConfigMap]
	cached     informer.Lister[*corev1.ConfigMap]
}

// reconcile acts on the present state alone, never on an event: so it is correct
// after a restart, after a gap, and when one call stands for two changes.
func (g greeter) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	found, ok := g.cached.Get(key.Namespace, key.Name)
	want := "Hello, " + labelOf(found) + "!"
	if !ok || found.Data["text"] == want {
		return controller.Result{}, nil
	}
	changed := found.DeepCopy() // what a lister returns is shared
	changed.Data = map[string]string{"text": want}
	// The resourceVersion guards the write: if another client was faster, the
	// update fails with a conflict and reconcile is called again.
	_, err := g.configMaps.Namespace(key.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
	return controller.Result{}, err
}

func labelOf(cm *corev1.ConfigMap) string {
	if cm == nil {
		return ""
	}
	return cm.Labels["greet"]
}

// newController watches ConfigMaps with the label; the server leaves out the rest.
func newController(cl *client.Client, factory *informer.Factory) (*controller.Controller, error) {
	greeted := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{LabelSelector: "greet"})
	g := greeter{configMaps: client.For[*corev1.ConfigMap](cl), cached: greeted.Lister()}
	c, err := controller.New(g.reconcile, controller.Options{Name: "greeter", Workers: 2})
	if err != nil {
		return nil, err
	}
	controller.For(c, greeted)
	return c, nil
}
