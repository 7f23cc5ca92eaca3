package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/conditions"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/objectmeta"
)

const (
	name = "website-controller" // of the controller, and of its fields' manager

	// finalizer keeps a deleted Website until its host name is free again: the garbage
	// collector does not delete what is in another namespace.
	finalizer = "example.com/host-name"
	// hostsNamespace has a ConfigMap for each host name that is in use.
	hostsNamespace = "website-hosts"
	// websiteLabel is on everything that the controller makes, with the Website's UID.
	websiteLabel = "example.com/website"

	byHost = "host" // index of Websites
	ready  = "Ready"
)

// newController says what is watched, and which changes call reconcile.
func newController(c *client.Client, factory *informer.Factory, recorder *events.Recorder) (*controller.Controller, error) {
	// One informer serves the ConfigMaps of pages and of host names. The server leaves
	// out what has not the label.
	ours := informer.ListOptions{LabelSelector: websiteLabel}
	websites := informer.For[*Website](factory, informer.ListOptions{})
	deployments := informer.For[*appsv1.Deployment](factory, ours)
	configMaps := informer.For[*corev1.ConfigMap](factory, ours)
	if err := websites.AddIndexers(cache.Indexers[*Website]{
		byHost: func(w *Website) ([]string, error) { return []string{w.Spec.Host}, nil },
	}); err != nil {
		return nil, err
	}

	r := &reconciler{
		client: c, recorder: recorder,
		websites: websites.Lister(), hosts: configMaps.Lister(),
	}
	ctl, err := controller.New(r.reconcile, controller.Options{Name: name, Workers: 4})
	if err != nil {
		return nil, err
	}
	controller.For(ctl, websites, controller.GenerationChanged) // not for each write of the status
	controller.Owns[*Website](ctl, deployments)
	controller.Owns[*Website](ctl, configMaps)
	// When a host name becomes free, the Websites that wait for it are reconciled.
	controller.Watch(ctl, configMaps, func(host *corev1.ConfigMap, add func(controller.Key)) {
		waiting, _ := websites.Lister().ByIndex(byHost, host.Name) // the index exists
		for _, w := range waiting {
			add(controller.KeyOf(w))
		}
	}, controller.InNamespaces[*corev1.ConfigMap](hostsNamespace))
	return ctl, nil
}

// reconciler brings Websites to their desired state.
type reconciler struct {
	client   *client.Client
	recorder *events.Recorder
	websites informer.Lister[*Website]
	hosts    informer.Lister[*corev1.ConfigMap]
}

// reconcile acts on the present state alone, never on an event: so it is correct after
// a restart, after a gap, and when one call stands for many changes. Each of its writes
// may be repeated: when one fails, or its answer is lost, it is called again.
func (r *reconciler) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	website, ok := r.websites.Get(key.Namespace, key.Name)
	if !ok {
		return controller.Result{}, nil // the garbage collector deletes what it owned
	}
	if objectmeta.IsBeingDeleted(website) {
		return controller.Result{}, r.finalize(ctx, website)
	}
	// The finalizer comes before what must not outlive the Website.
	website, err := r.addFinalizer(ctx, website)
	if err != nil {
		return controller.Result{}, err
	}
	replicas, condition, err := r.sync(ctx, website)
	if err != nil {
		condition = conditions.False(ready, "Failed", err.Error())
	}
	return controller.Result{}, errors.Join(err, r.writeStatus(ctx, website, replicas, condition))
}

func (r *reconciler) addFinalizer(ctx context.Context, website *Website) (*Website, error) {
	changed := website.DeepCopy() // what a lister returns is shared with the cache
	if !objectmeta.AddFinalizer(changed, finalizer) {
		return website, nil
	}
	// A patch leaves alone what this program's Website does not know of. The lock
	// refuses it if the cache was behind; then reconcile is called again.
	return client.For[*Website](r.client).MergePatch(ctx, website, changed, client.MergePatchOptions{OptimisticLock: true})
}

// sync makes everything that the Website needs, and returns how it is.
func (r *reconciler) sync(ctx context.Context, website *Website) (replicas int32, how metav1.Condition, err error) {
	owner, err := r.claimHost(ctx, website)
	if err != nil {
		return 0, how, err
	}
	if owner != string(website.UID) {
		// No error, because to try again is of no use: the watch says when it is.
		return 0, conditions.False(ready, "HostTaken", "another Website has the host name "+website.Spec.Host), nil
	}
	if _, err := apply(ctx, r, website, page(website)); err != nil {
		return 0, how, err
	}
	deployment, err := apply(ctx, r, website, server(website))
	if err != nil {
		return 0, how, err
	}
	replicas = deployment.Status.ReadyReplicas
	if deployment.Status.ObservedGeneration < deployment.Generation || replicas < website.Spec.Replicas {
		return replicas, conditions.False(ready, "Progressing", fmt.Sprintf("%d of %d replicas are ready", replicas, website.Spec.Replicas)), nil
	}
	return replicas, conditions.True(ready, "Serving", "http://"+website.Spec.Host), nil
}

// writeStatus writes the status if it is another one, and an event if there is news.
func (r *reconciler) writeStatus(ctx context.Context, website *Website, replicas int32, condition metav1.Condition) error {
	changed := website.DeepCopy()
	changed.Status.ObservedGeneration = website.Generation
	changed.Status.ReadyReplicas = replicas
	conditions.Set(changed, &changed.Status.Conditions, condition)
	if _, err := client.For[*Website](r.client).MergePatchStatus(ctx, website, changed, client.MergePatchOptions{OptimisticLock: true}); err != nil {
		return err // nothing was sent if nothing had changed
	}
	before := conditions.Get(website.Status.Conditions, ready)
	switch {
	case before != nil && before.Reason == condition.Reason:
	case condition.Reason == "HostTaken" || condition.Reason == "Failed":
		r.recorder.Warning(website, condition.Reason, "%s", condition.Message)
	default:
		r.recorder.Normal(website, condition.Reason, "%s", condition.Message)
	}
	return nil
}
