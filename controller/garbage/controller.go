package garbage

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/rest"
)

// workers is how many objects are looked at concurrently.
const workers = 16

// rediscover is how often the server is asked whether it serves new kinds.
const rediscover = 30 * time.Second

// Controller is the garbage collector.
type Controller struct {
	*controller.Controller
	client  *rest.Client
	factory *informer.Factory
	log     *slog.Logger
	graph   *graph

	mu       sync.Mutex
	watching map[schema.GroupVersionResource]bool
	kinds    map[schema.GroupKind]kind
}

// kind is where objects of a kind are reached.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// New returns a collector. It has informers of its own, for metadata only.
func New(client *rest.Client, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		client:   client,
		factory:  informer.NewFactory(client, informer.Options{Logger: log}),
		log:      log.With("controller", "garbage"),
		graph:    newGraph(),
		watching: map[schema.GroupVersionResource]bool{},
		kinds:    map[schema.GroupKind]kind{},
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "garbage", Workers: workers, Logger: log})
	return c, err
}

// Run collects until ctx ends. It blocks.
func (c *Controller) Run(ctx context.Context) error {
	defer c.factory.Shutdown()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := c.discover(ctx)
		if err == nil {
			break
		}
		c.log.Info("the server's kinds are not known yet, trying again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
	if err := c.factory.WaitForSync(ctx); err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { c.keepDiscovering(ctx) })
	return c.Controller.Run(ctx)
}

func (c *Controller) keepDiscovering(ctx context.Context) {
	ticker := time.NewTicker(rediscover)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := c.discover(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn("kinds not discovered, trying again later", "error", err)
			}
		}
	}
}

// discover starts informers for what is served and not watched yet.
func (c *Controller) discover(ctx context.Context) error {
	resources, err := c.client.Discover(ctx)
	if len(resources) == 0 && err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		c.kinds[schema.GroupKind{Group: r.GroupVersionResource.Group, Kind: r.Kind}] = kind{r.GroupVersionResource, r.Namespaced}
		if c.watching[r.GroupVersionResource] || !collectable(r) {
			continue
		}
		if err := c.watch(r.GroupVersionResource); err != nil {
			return fmt.Errorf("watch %s: %w", r.GroupVersionResource.Resource, err)
		}
		c.watching[r.GroupVersionResource] = true
	}
	c.factory.Start(ctx)
	return err
}

// collectable leaves out what cannot be followed and deleted, and events,
// which own nothing, are owned by nothing and are many.
func collectable(r rest.APIResource) bool {
	if r.Kind == "Event" {
		return false
	}
	for _, verb := range []string{"list", "watch", "delete"} {
		if !slices.Contains(r.Verbs, verb) {
			return false
		}
	}
	return true
}

func (c *Controller) watch(resource schema.GroupVersionResource) error {
	inf := informer.Metadata(c.factory, resource, informer.ListOptions{})
	_, err := inf.AddHandler(informer.HandlerFuncs[*metav1.PartialObjectMetadata]{
		Add: func(obj *metav1.PartialObjectMetadata, _ bool) { c.changed(resource, obj) },
		Update: func(old, obj *metav1.PartialObjectMetadata) {
			if old.UID != obj.UID {
				c.gone(old)
			}
			c.changed(resource, obj)
		},
		Delete: func(obj *metav1.PartialObjectMetadata, _ bool) { c.gone(obj) },
	}, informer.HandlerOptions{})
	return err
}

func (c *Controller) changed(resource schema.GroupVersionResource, obj *metav1.PartialObjectMetadata) {
	o := describe(resource, obj)
	affected := c.graph.put(o)
	if len(o.owners) > 0 || o.deleting {
		c.enqueue(o.uid)
	}
	// An owner that is being deleted in the foreground waits for dependents.
	for _, owner := range affected {
		if known, ok := c.graph.get(owner); ok && known.deleting {
			c.enqueue(owner)
		}
	}
}

func (c *Controller) gone(obj *metav1.PartialObjectMetadata) {
	dependents, owners := c.graph.remove(obj.UID)
	for _, uid := range slices.Concat(dependents, owners) {
		c.enqueue(uid)
	}
}

// enqueue uses the uid as the key's name: names may be used again.
func (c *Controller) enqueue(uid types.UID) { c.Add(controller.Key{Name: string(uid)}) }

// kindOf says where objects of an owner's kind are reached.
func (c *Controller) kindOf(ref metav1.OwnerReference) (kind, bool) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return kind{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kinds[schema.GroupKind{Group: gv.Group, Kind: ref.Kind}]
	return k, ok
}
