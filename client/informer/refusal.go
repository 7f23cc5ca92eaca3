package informer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// WaitForFirstList waits until the cache holds a complete list, as WaitForResourceVersion
// does for "". But it does not wait for a list that the server refuses: once that has
// answered that the program's identity may not list the resource, or that it does not serve
// it, this is the error, also of later calls, until the server answers otherwise.
// apierrors.IsForbidden tells the one, and meta.IsNoMatchError the other: it is not
// apierrors.IsNotFound, which would say that an object does not exist. The informer goes on
// trying, spaced as by Options.Reflector.Backoff, and is there when the right is granted, or
// the CustomResourceDefinition installed.
//
// Of a 404, the server's discovery is asked whether it serves the resource: it may have
// lists where it has no watches.
func (i *SharedInformer[T]) WaitForFirstList(ctx context.Context) error {
	for disproved := (*refusal)(nil); ; {
		refused, err := i.awaitFirstList(ctx, disproved)
		if refused == nil {
			return err
		}
		if refused.stands(ctx) {
			return i.refusedErr(refused)
		}
		disproved = refused
	}
}

// awaitFirstList returns when there is a complete list, or a refusal other than one that is
// disproved, or there will be neither.
func (i *SharedInformer[T]) awaitFirstList(ctx context.Context, disproved *refusal) (*refusal, error) {
	var refused *refusal // written before done is closed
	w := i.waits.enter(func() bool {
		refused = i.lastRefusal(disproved)
		return refused != nil && !i.HasSynced()
	})
	defer i.waits.leave(w)
	i.advanced()
	select {
	case <-w.done:
		return refused, nil
	case <-i.synced:
	case <-i.done:
	case <-ctx.Done():
	}
	return nil, i.waitForSync(ctx)
}

// refusal is an answer to a list that another one will not have soon.
type refusal struct {
	err       error
	namespace string                              // in which was asked; "": in all
	served    func(context.Context) (bool, error) // asks the server's discovery; nil: it cannot be asked
}

// lastRefusal returns the last answer of the server to one of the watches, if that was a
// refusal other than one.
func (i *SharedInformer[T]) lastRefusal(but *refusal) *refusal {
	for _, p := range i.namespaceWatches {
		if refused := p.refused.Load(); refused != nil && refused != but {
			return refused
		}
	}
	return nil
}

// noteFailure is called with each error of the reflector. It wakes the calls that wait for
// the first list. Once there was one, a refusal is that of the watch.
func (p *namespaceWatch[T]) noteFailure(name string, err error) {
	var refused *refusal
	listed := p.reflector.LastSyncResourceVersion() != ""
	if !listed && (client.IsStatus(err) && apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		refused = &refusal{err: err, namespace: p.namespace}
		if p.namespace == "" {
			refused.namespace = p.informer.ListOptions().Namespace
		}
		if discoverer, ok := p.source.(reflector.Discoverer); ok {
			refused.served = discoverer.Served
		}
	}
	p.refused.Store(refused)
	p.informer.advanced()
	if onError := p.informer.opts.OnError; onError != nil {
		onError(name, err)
	}
}

// stands reports whether the server's discovery does not contradict a refusal.
func (r *refusal) stands(ctx context.Context) bool {
	if r.served == nil || apierrors.IsForbidden(r.err) {
		return true
	}
	served, err := r.served(ctx)
	return err != nil || !served
}

// refusedErr makes a refusal the error of a wait: it says what to do about it.
func (i *SharedInformer[T]) refusedErr(r *refusal) error {
	if !apierrors.IsForbidden(r.err) {
		return &notServedError{
			text:    fmt.Sprintf("informer %s: %v", i.name, r.err),
			noMatch: &meta.NoResourceMatchError{PartialResource: i.GroupVersionResource()},
		}
	}
	where := "in all namespaces, by a ClusterRole and a ClusterRoleBinding"
	if r.namespace != "" {
		where = fmt.Sprintf("in namespace %q", r.namespace)
	}
	resource := i.GroupVersionResource()
	return fmt.Errorf("informer %s: %w: grant the program's identity the verbs list and watch of resource %q in API group %q %s",
		i.name, r.err, resource.Resource, resource.Group, where)
}

// notServedError is no apierrors.IsNotFound: nothing is said of an object.
type notServedError struct {
	text    string
	noMatch error
}

func (e *notServedError) Error() string { return e.text }

// Unwrap has meta.IsNoMatchError say what it is.
func (e *notServedError) Unwrap() error { return e.noMatch }
