package garbage

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pace"
)

const (
	// workers is how many objects are looked at concurrently.
	workers = 16
	// deletions is how many of them are deleted at a time: the server has others to serve.
	deletions = 4
)

// Controller is the garbage collector.
type Controller struct {
	*controller.Controller
	client *client.Client
	log    *slog.Logger
	graph  *graph
	absent absent
	waits  waits
	pace   *pace.Pace // of the deletions
	// waiting has an element for each worker that waits for the graph.
	waiting chan struct{}
	// asking has an element for each worker that asks for many owners of one object.
	asking chan struct{}
	// served receives a signal, sent without waiting, that the set of served
	// resources may have changed.
	served      chan struct{}
	discoveries *discoveries

	mu sync.Mutex
	// watching holds each resource that is watched.
	watching map[schema.GroupVersionResource]watched
	// kinds keeps those that are served no more, too: their objects are gone,
	// which is what the server then answers.
	kinds map[schema.GroupKind]kind
	// watches counts the changes of watching, and replacing is true while there is one: resources
	// may be left out then that are watched in another version in a moment.
	watches   uint64
	replacing bool
}

// watched is the informer of a resource. It has a factory of its own, so that it can be
// given up alone when the resource is served no more.
type watched struct {
	resource   schema.GroupVersionResource
	factory    *informer.Factory
	informer   resourceInformer
	handler    *informer.Registration // which keeps the graph
	namespaced bool
	answers    *answers
}

// kind is where objects of a kind are reached.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// New returns a collector. It has informers of its own, for metadata only.
func New(cl *client.Client, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		client:   cl,
		log:      log.With("controller", "garbage"),
		graph:    newGraph(),
		pace:     pace.New(deletions),
		waiting:  make(chan struct{}, graphWaiters),
		asking:   make(chan struct{}, manyOwners),
		served:   make(chan struct{}, 1),
		watching: map[schema.GroupVersionResource]watched{},
		kinds:    map[schema.GroupKind]kind{},

		discoveries: newDiscoveries(),
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "garbage", Workers: workers, Logger: log})
	return c, err
}

// Run collects until ctx ends. It blocks.
func (c *Controller) Run(ctx context.Context) error {
	defer c.stopWatching()
	if !c.discoverFirst(ctx) {
		return nil
	}
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() { c.keepDiscovering(ctx) })
	c.waitForSync(ctx)
	return c.Controller.Run(ctx)
}

func (c *Controller) watch(resource schema.GroupVersionResource, namespaced bool) (watched, error) {
	factory := informer.NewFactory(c.client, informer.Options{Logger: c.log})
	inf := informer.Metadata(factory, resource, informer.ListOptions{})
	handler, err := inf.AddHandler(c.handlerOf(resource), informer.HandlerOptions{})
	return watched{resource, factory, inf, handler, namespaced, &answers{}}, err
}

// handlerOf keeps the graph for the objects of a resource.
func (c *Controller) handlerOf(resource schema.GroupVersionResource) informer.Handler[*metav1.PartialObjectMetadata] {
	return informer.HandlerFuncs[*metav1.PartialObjectMetadata]{
		Add: func(obj *metav1.PartialObjectMetadata, _ bool) { c.changed(resource, obj) },
		Update: func(old, obj *metav1.PartialObjectMetadata) {
			if old.UID != obj.UID {
				c.gone(old)
			}
			c.changed(resource, obj)
		},
		Delete: func(obj *metav1.PartialObjectMetadata, _ bool) {
			c.gone(obj)
			c.definitionChanged(resource, obj.Name)
		},
	}
}

func (c *Controller) changed(resource schema.GroupVersionResource, obj *metav1.PartialObjectMetadata) {
	c.definitionChanged(resource, obj.Name)
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

func (c *Controller) gone(obj *metav1.PartialObjectMetadata) { c.forget(obj.UID) }

// forget drops an object from the graph and has those looked at that it
// concerns.
func (c *Controller) forget(uid types.UID) {
	dependents, owners := c.graph.remove(uid)
	for _, uid := range slices.Concat(dependents, owners) {
		c.enqueue(uid)
	}
}

// enqueue uses the uid as the key's name: names may be used again. What the
// first lists held is as urgent as what is new: the one belongs to the other.
func (c *Controller) enqueue(uid types.UID) {
	c.AddPriority(controller.Key{Name: string(uid)}, 0)
}

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
