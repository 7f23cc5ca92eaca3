package resourcequota

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/internal/quota"
)

const workers = 4

// Options configures the controller.
type Options struct {
	// RecountAfter is how long nothing must have been claimed of a quota before what
	// is used is counted anew. It must be longer than a server takes from a claim to the
	// end of the object's write. Default 30 s.
	RecountAfter time.Duration
	// Logger receives what operators should see. Default slog.Default().
	Logger *slog.Logger
}

// Controller is the resource quota controller.
type Controller struct {
	*controller.Controller
	client       *client.Client
	api          client.Resource[*corev1.ResourceQuota]
	quotas       *informer.SharedInformer[*corev1.ResourceQuota]
	mapper       *discovery.Mapper
	ledger       *ledger
	recountAfter time.Duration
	now          func() time.Time
	kinds        *kinds
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, opts Options) (*Controller, error) {
	if opts.RecountAfter <= 0 {
		opts.RecountAfter = 30 * time.Second
	}
	c := &Controller{
		client: cl, api: client.For[*corev1.ResourceQuota](cl),
		quotas: informer.For[*corev1.ResourceQuota](factory, informer.ListOptions{}),
		mapper: discovery.NewMapper(cl, discovery.Options{}),
		ledger: newLedger(), recountAfter: opts.RecountAfter, now: time.Now,
	}
	c.kinds = &kinds{
		client: factory.Client(), log: opts.Logger, synced: c.addAll, forget: c.ledger.forget,
		handle:  c.handleKind,
		watched: map[schema.GroupResource]*watchedKind{}, named: map[controller.Key][]schema.GroupResource{},
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "resourcequota", Workers: workers, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.quotas, c.quotaHandler())
	controller.Handle(c.Controller, source.Informer, handler[*corev1.Pod](c, podResource))
	controller.Handle(c.Controller, informer.For[*corev1.Service](factory, informer.ListOptions{}), handler[*corev1.Service](c, serviceResource))
	controller.Handle(c.Controller, informer.For[*corev1.PersistentVolumeClaim](factory, informer.ListOptions{}), handler[*corev1.PersistentVolumeClaim](c, claimResource))
	return c, nil
}

// The resources that are always watched: the controller begins when their objects are
// listed.
var (
	podResource     = schema.GroupResource{Resource: "pods"}
	serviceResource = schema.GroupResource{Resource: "services"}
	claimResource   = schema.GroupResource{Resource: "persistentvolumeclaims"}
)

func (c *Controller) quotaHandler() informer.Handler[*corev1.ResourceQuota] {
	return informer.HandlerFuncs[*corev1.ResourceQuota]{
		Add: func(q *corev1.ResourceQuota, _ bool) { c.Add(controller.KeyOf(q)) },
		Update: func(old, q *corev1.ResourceQuota) {
			if len(quota.Increase(q.Status.Used, old.Status.Used)) > 0 {
				c.ledger.sawClaim(q.Namespace, q.Name, c.now())
			}
			c.Add(controller.KeyOf(q))
		},
		Delete: func(q *corev1.ResourceQuota, _ bool) { c.Add(controller.KeyOf(q)) },
	}
}

// handler has the ledger follow the objects of a resource.
func handler[T client.Object](c *Controller, resource schema.GroupResource) informer.Handler[T] {
	evaluator, _ := quota.For(resource)
	note := func(obj T, value any) {
		for _, name := range c.ledger.note(evaluator, obj.GetNamespace(), obj.GetName(), value, c.now()) {
			c.Add(controller.Key{Namespace: obj.GetNamespace(), Name: name})
		}
	}
	return informer.HandlerFuncs[T]{
		Add:    func(obj T, _ bool) { note(obj, obj) },
		Update: func(_, obj T) { note(obj, obj) },
		Delete: func(obj T, _ bool) { note(obj, nil) },
	}
}

// handleKind has the ledger follow the objects of a kind that a quota names. Of all but
// claims of devices their number is enough.
func (c *Controller) handleKind(factory *informer.Factory, resource schema.GroupResource, served schema.GroupVersionResource) (*informer.Registration, error) {
	if resource == quota.DeviceClaims {
		claims := informer.For[*resourcev1.ResourceClaim](factory, informer.ListOptions{})
		return claims.AddHandler(handler[*resourcev1.ResourceClaim](c, resource), informer.HandlerOptions{})
	}
	objects := informer.Metadata(factory, served, informer.ListOptions{})
	return objects.AddHandler(handler[*metav1.PartialObjectMetadata](c, resource), informer.HandlerOptions{})
}

// follows reports whether the ledger has the objects of a resource. If it does not yet,
// the quotas are looked at when it does: only kinds that quotas name are watched.
func (c *Controller) follows(ctx context.Context, resource schema.GroupResource) (bool, error) {
	switch resource {
	case podResource, serviceResource, claimResource:
		return true, nil
	}
	served, err := c.mapper.ByResource(ctx, resource.WithVersion(""))
	if err != nil {
		return false, err
	}
	return c.kinds.follows(resource, served.GroupVersionResource())
}

// addAll has all quotas looked at.
func (c *Controller) addAll() {
	for _, q := range c.quotas.Lister().List("", labels.Everything()) {
		c.Add(controller.KeyOf(q))
	}
}

// Run runs the controller until ctx ends, and then ends the watches of the kinds that
// quotas name.
func (c *Controller) Run(ctx context.Context) error {
	defer c.kinds.close()
	return c.Controller.Run(ctx)
}
