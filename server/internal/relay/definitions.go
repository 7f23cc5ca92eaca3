package relay

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// definitions follows the CustomResourceDefinitions of the upstream from the first cache of a custom resource on. A change
// of a definition may change how objects look whose versions stay as they are: there is a new default, a field is pruned
// or converted in another way. No stream says that, so the caches of the kind are dropped, and filled anew for the
// clients that come back with their versions. It is the store of a reflector that asks for metadata only.
type definitions struct {
	relay  *Relay
	begin  sync.Once
	listed chan struct{} // closed when the definitions have been listed, or cannot be
	once   sync.Once     // closes listed

	mu          sync.Mutex
	generations map[string]int64 // by the name of the definition; nil before the first list
}

const (
	// definitionsPatience is how long the first fill of a custom resource waits for the list of definitions: a change
	// between the two would not be seen.
	definitionsPatience = 5 * time.Second
	// definitionSettle is after how long the caches of a kind whose definition has changed are dropped once more. An
	// upstream may show for a moment what was before a change that it has sent, as with roles (rolesSettle).
	definitionSettle = time.Second
)

// follow follows the definitions until ctx ends.
func (d *definitions) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := d.followOnce(ctx)
		d.once.Do(func() { close(d.listed) })
		if ctx.Err() == nil {
			d.relay.opts.Logger.Warn("the upstream does not show the relay its CustomResourceDefinitions: objects of custom resources may look as before a change of their definition until they change, too (docs/operators/relay.md)",
				"error", err)
		}
		select {
		case <-time.After(retryRefused):
		case <-ctx.Done():
		}
	}
}

// followOnce is follow until the upstream refuses.
func (d *definitions) followOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	resource := client.Metadata(d.relay.client, gvr)
	var refusals refusals
	refl, err := reflector.New(reflector.Resource(resource, nil), reflector.Store[*metav1.PartialObjectMetadata](d), reflector.Options{
		Name: "customresourcedefinitions", Logger: d.relay.opts.Logger, PagedList: d.relay.opts.Deltas,
		Backoff: reflector.Backoff{Base: 200 * time.Millisecond, Max: retryUnanswered},
		OnError: func(_ string, err error) {
			if refusals.isNotShown(ctx, d.relay, gvr.GroupResource(), err) {
				cancel(err)
			}
		},
		OnProgress: func(string) { refusals.end() },
	})
	if err != nil {
		return err
	}
	if err := refl.Run(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// await waits until the definitions have been listed, or for as long as a fill may wait.
func (d *definitions) await(ctx context.Context) {
	timer := time.NewTimer(definitionsPatience)
	defer timer.Stop()
	select {
	case <-d.listed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// note notes a definition that was listed or has changed.
func (d *definitions) note(o *metav1.PartialObjectMetadata) error {
	d.mu.Lock()
	before, known := d.generations[o.Name]
	if d.generations != nil {
		d.generations[o.Name] = o.Generation
	}
	d.mu.Unlock()
	switch {
	case !known:
		d.relay.dropDefined(o.Name) // of one that was deleted, and made anew
	case before != o.Generation:
		d.changed(o.Name)
	}
	return nil
}

// changed drops the caches of a kind whose definition has changed.
func (d *definitions) changed(name string) {
	d.relay.dropDefined(name)
	time.AfterFunc(definitionSettle, func() { d.relay.dropDefined(name) })
}

// Add implements reflector.Store.
func (d *definitions) Add(o *metav1.PartialObjectMetadata) error { return d.note(o) }

// Update implements reflector.Store.
func (d *definitions) Update(o *metav1.PartialObjectMetadata) error { return d.note(o) }

// Delete implements reflector.Store. The streams of the kind bring the deletions of its objects, and end by themselves.
func (d *definitions) Delete(o *metav1.PartialObjectMetadata) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.generations, o.Name)
	return nil
}

// Replace implements reflector.Store.
func (d *definitions) Replace(list []*metav1.PartialObjectMetadata, _ string) error {
	generations := make(map[string]int64, len(list))
	for _, o := range list {
		generations[o.Name] = o.Generation
	}
	d.mu.Lock()
	before := d.generations
	d.generations = generations
	d.mu.Unlock()
	d.once.Do(func() { close(d.listed) })
	if before == nil {
		return nil
	}
	for name, generation := range generations {
		if was, known := before[name]; !known {
			d.relay.dropDefined(name)
		} else if was != generation {
			d.changed(name)
		}
	}
	return nil
}

// dropDefined drops the caches of the kind of a definition, whose clients then come back.
func (r *Relay) dropDefined(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for gvr, s := range r.sources {
		if s.custom && gvr.Resource+"."+gvr.Group == name {
			r.opts.Logger.Info("dropping a cache because the definition of its kind has changed: it is filled anew", "resource", gvr)
			r.counts.redefined.Add(1)
			r.drop(s)
		}
	}
}
