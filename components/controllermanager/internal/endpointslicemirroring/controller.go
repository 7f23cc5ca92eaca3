package endpointslicemirroring

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pace"
)

const (
	workers = 5

	// leaderAnnotation is on Endpoints by which old programs elect a leader: they change all the time, and lead to nothing.
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

	// bySource is the index of this controller's slices by the Endpoints objects that they mirror.
	bySource = "mirrored-endpoints"
)

// Controller is the EndpointSliceMirroring controller. Its keys are the names of Endpoints, which are those of their Services.
type Controller struct {
	*controller.Controller
	services *informer.SharedInformer[*corev1.Service]
	sources  *informer.SharedInformer[*legacyEndpoints]
	slices   *informer.SharedInformer[*discoveryv1.EndpointSlice]

	sourceAPI client.Resource[*legacyEndpoints]
	sliceAPI  client.Resource[*discoveryv1.EndpointSlice]
	events    *events.Recorder
	rests     pace.Rests[controller.Key]
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		services:  informer.For[*corev1.Service](factory, informer.ListOptions{}),
		sources:   informer.For[*legacyEndpoints](factory, informer.ListOptions{}),
		slices:    informer.For[*discoveryv1.EndpointSlice](factory, informer.ListOptions{}),
		sourceAPI: client.For[*legacyEndpoints](cl), sliceAPI: client.For[*discoveryv1.EndpointSlice](cl),
		events: recorder,
	}
	err := c.slices.AddIndexers(cache.Indexers[*discoveryv1.EndpointSlice]{bySource: func(slice *discoveryv1.EndpointSlice) ([]string, error) {
		if key, ok := sourceOf(slice); ok {
			return []string{indexValue(key)}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return nil, err
	}
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "endpointslicemirroring", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.services, c.serviceHandler())
	controller.Handle(c.Controller, c.sources, c.sourceHandler())
	controller.Handle(c.Controller, c.slices, c.sliceHandler())
	return c, nil
}

// sourceOf returns the key of the Endpoints object that a slice mirrors, if it mirrors one.
func sourceOf(slice *discoveryv1.EndpointSlice) (key controller.Key, ok bool) {
	name := slice.Labels[discoveryv1.LabelServiceName]
	return controller.Key{Namespace: slice.Namespace, Name: name}, name != "" && slice.Labels[discoveryv1.LabelManagedBy] == managedBy
}

func indexValue(key controller.Key) string { return key.Namespace + "/" + key.Name }

func (c *Controller) serviceHandler() informer.Handler[*corev1.Service] {
	return informer.HandlerFuncs[*corev1.Service]{
		Add: func(service *corev1.Service, _ bool) { c.Add(controller.KeyOf(service)) },
		Update: func(old, service *corev1.Service) {
			if selects(old) != selects(service) {
				c.Add(controller.KeyOf(service))
			}
		},
		Delete: func(service *corev1.Service, _ bool) { c.Add(controller.KeyOf(service)) },
	}
}

func selects(service *corev1.Service) bool { return len(service.Spec.Selector) > 0 }

func (c *Controller) sourceHandler() informer.Handler[*legacyEndpoints] {
	return informer.HandlerFuncs[*legacyEndpoints]{
		Add: func(source *legacyEndpoints, _ bool) {
			if isMirrored(source) {
				c.Add(controller.KeyOf(source))
			}
		},
		Update: func(old, source *legacyEndpoints) {
			if isMirrored(old) || isMirrored(source) {
				c.Add(controller.KeyOf(source))
			}
		},
		Delete: func(source *legacyEndpoints, _ bool) { c.Add(controller.KeyOf(source)) },
	}
}

// isMirrored reports whether an object is mirrored if its Service lets it.
func isMirrored(source *legacyEndpoints) bool {
	_, elects := source.Annotations[leaderAnnotation]
	return !elects && source.Labels[discoveryv1.LabelSkipMirror] != "true"
}

func (c *Controller) sliceHandler() informer.Handler[*discoveryv1.EndpointSlice] {
	add := func(slice *discoveryv1.EndpointSlice) {
		if key, ok := sourceOf(slice); ok {
			c.Add(key)
		}
	}
	return informer.HandlerFuncs[*discoveryv1.EndpointSlice]{
		Add: func(slice *discoveryv1.EndpointSlice, _ bool) { add(slice) },
		Update: func(old, slice *discoveryv1.EndpointSlice) {
			add(old)
			add(slice)
		},
		Delete: func(slice *discoveryv1.EndpointSlice, _ bool) { add(slice) },
	}
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	existing, err := c.slices.Lister().ByIndex(bySource, indexValue(key))
	if err != nil {
		return controller.Result{}, err
	}
	source, known := c.look(key)
	if source == nil {
		c.rests.Forget(key)
		return controller.Result{}, c.write(ctx, nil, plan{remove: existing}, known)
	}
	if left := c.rests.Left(key); left > 0 {
		return controller.Result{RequeueAfter: left, Pending: true}, nil // a rest ends no back-off
	}
	began := time.Now()
	wanted := desiredOf(source.Subsets)
	p := planFor(source, wanted.groups, existing)
	c.rests.Worked(key, time.Since(began)) // without the writes: they may wait for the server
	c.report(source, wanted)
	return controller.Result{}, c.write(ctx, source, p, known)
}

// look returns the Endpoints object that is to be mirrored, or nil, and the objects that say so.
func (c *Controller) look(key controller.Key) (source *legacyEndpoints, known []metav1.Object) {
	source, found := c.sources.Lister().Get(key.Namespace, key.Name)
	service, served := c.services.Lister().Get(key.Namespace, key.Name)
	if found {
		known = append(known, source)
	}
	if served {
		known = append(known, service)
	}
	if !found || !isMirrored(source) || !served || selects(service) {
		return nil, known
	}
	return source, known
}

// report says on the object what of it is not mirrored.
func (c *Controller) report(source *legacyEndpoints, wanted desired) {
	if wanted.invalid > 0 {
		c.events.Warning(source, "InvalidIPAddress", "Skipped %d invalid IP addresses when mirroring to EndpointSlices", wanted.invalid)
	}
	if wanted.skipped > wanted.invalid {
		c.events.Warning(source, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped", addressesMost, wanted.skipped)
	}
}

// write does what is planned. known is what the plan was made from.
func (c *Controller) write(ctx context.Context, source *legacyEndpoints, p plan, known []metav1.Object) error {
	if p.empty() {
		return nil
	}
	for _, slice := range p.remove {
		known = append(known, slice)
	}
	if len(p.create)+len(p.remove) > 0 { // what is updated, its version guards
		if err := controller.Consistent(ctx, known...); err != nil {
			return err
		}
	}
	if len(p.create) > 0 {
		if there, err := c.stillThere(ctx, source); !there || err != nil {
			return err
		}
	}
	for _, slice := range p.create {
		if err := c.create(ctx, slice); err != nil {
			return err
		}
	}
	for _, slice := range p.update {
		if err := c.update(ctx, slice); err != nil {
			return err
		}
	}
	for _, slice := range p.remove { // last, so that no address is missing meanwhile
		if err := c.remove(ctx, slice); err != nil {
			return err
		}
	}
	return nil
}

// stillThere reports whether an object may get a slice. That it is gone has no version that Consistent could wait for,
// so the server is asked.
func (c *Controller) stillThere(ctx context.Context, source *legacyEndpoints) (bool, error) {
	live, err := c.sourceAPI.Namespace(source.Namespace).Get(ctx, source.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read Endpoints %s before they get a slice: %w", source.Name, err)
	case live.UID != source.UID || live.DeletionTimestamp != nil:
		return false, nil // the watch brings that
	}
	return true, controller.Consistent(ctx, live)
}

func (c *Controller) create(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	created, err := c.sliceAPI.Namespace(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create slice: %w", err)
	}
	controller.Wrote(ctx, created)
	return nil
}

func (c *Controller) update(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	updated, err := c.sliceAPI.Namespace(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the newer state is on its way and brings us back
	}
	if err != nil {
		return fmt.Errorf("update slice %s: %w", slice.Name, err)
	}
	controller.Wrote(ctx, updated)
	return nil
}

func (c *Controller) remove(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	err := c.sliceAPI.Namespace(slice.Namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &slice.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete slice %s: %w", slice.Name, err)
	}
	return nil
}
