package namespace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pace"
)

const workers = 4

// recheck is when a namespace that is not empty yet is looked at again: its
// pods end when their kubelets say so.
const recheck = 250 * time.Millisecond

// Controller is the namespace controller.
type Controller struct {
	*controller.Controller
	client     *client.Client
	api        client.Resource[*corev1.Namespace]
	namespaces *informer.SharedInformer[*corev1.Namespace]
	pace       *pace.Pace // of the deletions
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		client:     cl,
		api:        client.For[*corev1.Namespace](cl),
		namespaces: informer.For[*corev1.Namespace](factory, informer.ListOptions{}),
		pace:       pace.New(1),
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "namespace", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.For(c.Controller, c.namespaces, func(change controller.Change[*corev1.Namespace]) bool {
		return change.Kind != controller.Deleted && change.Object.DeletionTimestamp != nil
	})
	return c, nil
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	namespace, ok := c.namespaces.Lister().Get("", key.Name)
	if !ok || namespace.DeletionTimestamp == nil || !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return controller.Result{}, nil
	}
	namespace, err := c.stillThere(ctx, namespace)
	if namespace == nil || err != nil {
		return controller.Result{}, err
	}
	p := c.empty(ctx, namespace)
	switch err := errors.Join(p.undiscovered, errors.Join(p.failed...)); {
	case p.gone:
		return controller.Result{}, nil
	case err != nil:
		return controller.Result{}, errors.Join(err, c.report(ctx, namespace, p))
	case len(p.left) > 0:
		return controller.After(recheck), c.report(ctx, namespace, p)
	case p.found:
		// Everything could be deleted at once. A create that was under way
		// when the deletion began may have come after its kind was looked at:
		// only a pass that finds nothing ends the namespace.
		return controller.After(time.Millisecond), nil
	}
	return controller.Result{}, c.finalize(ctx, namespace)
}

// stillThere asks the server for a namespace that has to be emptied, and returns nil if there is nothing to do. Another
// namespace may have its name by now, and what is deleted of a namespace is only found by the name.
func (c *Controller) stillThere(ctx context.Context, namespace *corev1.Namespace) (*corev1.Namespace, error) {
	live, err := c.api.Get(ctx, namespace.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read namespace %s before it is emptied: %w", namespace.Name, err)
	case live.UID != namespace.UID || !slices.Contains(live.Spec.Finalizers, corev1.FinalizerKubernetes):
		return nil, nil
	}
	return live, nil
}

// pass is what one look at a namespace has found.
type pass struct {
	gone         bool                         // it went meanwhile, and what there is now is another's
	found        bool                         // there was anything
	left         map[schema.GroupResource]int // how many objects are still there
	finalizers   map[string]int               // how many of them have each finalizer
	undiscovered error                        // of which groups it is not known what there is
	failed       []error                      // what could not be read or deleted
}

// podResource is what goes first. A pod that still runs may need all else that the namespace has: without its
// NetworkPolicies it would be open to everyone (KEP-5080).
var podResource = schema.GroupResource{Resource: "pods"}

// empty deletes everything in a namespace, pods first: nothing else goes as long as one is left, or it is not known
// whether there are any. Any other resource that cannot be read, and a group that cannot be asked for its resources, keep
// the namespace, and nothing else in it.
func (c *Controller) empty(ctx context.Context, namespace *corev1.Namespace) pass {
	resources, err := discovery.Fetch(ctx, c.client)
	p := pass{undiscovered: err, left: map[schema.GroupResource]int{}, finalizers: map[string]int{}}
	first, others := podsFirst(discovery.Preferred(resources))
	if len(first) == 0 && err != nil {
		return p
	}
	c.emptyEach(ctx, first, namespace, &p)
	if !p.gone && len(p.left) == 0 && len(p.failed) == 0 {
		c.emptyEach(ctx, others, namespace, &p)
	}
	return p
}

// podsFirst divides resources into pods and all that goes after them.
func podsFirst(resources []discovery.Resource) (pods, others []discovery.Resource) {
	for _, r := range resources {
		if r.GroupVersionResource().GroupResource() == podResource {
			pods = append(pods, r)
		} else {
			others = append(others, r)
		}
	}
	return pods, others
}

// emptyEach deletes what there is of some resources, and notes in p what it has found.
func (c *Controller) emptyEach(ctx context.Context, resources []discovery.Resource, namespace *corev1.Namespace, p *pass) {
	for _, r := range resources {
		if r.Mapping.Scope != scheme.Namespaced || !r.Supports("list", "delete") {
			continue
		}
		content, err := c.emptyOf(ctx, r, namespace)
		if errors.Is(err, errGone) {
			p.gone = true
			return
		}
		p.found = p.found || content.before > 0
		if err != nil {
			p.failed = append(p.failed, fmt.Errorf("%s: %w", r.Mapping.Resource, err))
		}
		if content.remaining > 0 {
			p.left[r.GroupVersionResource().GroupResource()] = content.remaining
			for finalizer, n := range content.finalizers {
				p.finalizers[finalizer] += n
			}
		}
	}
}

// pageSize is how many objects one request deletes: all of a large namespace in one would
// take both the server and the time that a request may take.
const pageSize = 25

// errGone: the namespace that is being emptied is not there any more.
var errGone = errors.New("the namespace has gone")

// content is what there is of one resource in a namespace.
type content struct {
	before, remaining int            // objects
	finalizers        map[string]int // how many objects had each finalizer before
}

// emptyOf deletes what there is of one resource, page by page, and counts it before and
// after. Between the pages it leaves the server to others. The server is believed when it
// says that it does not list the resource, or delete several of it at once, although
// discovery has these verbs: nothing else would let the namespace go.
func (c *Controller) emptyOf(ctx context.Context, r discovery.Resource, namespace *corev1.Namespace) (content, error) {
	endpoint := client.Metadata(c.client, r.GroupVersionResource()).Namespace(namespace.Name)
	page := metav1.ListOptions{Limit: pageSize}
	found := content{finalizers: map[string]int{}}
	for list, err := range endpoint.Pages(ctx, page) {
		if apierrors.IsMethodNotSupported(err) && client.IsStatus(err) { // and no page of a proxy
			return content{}, nil
		}
		if err == nil && len(list.Items) > 0 {
			found.add(list.Items)
			err = c.deletePage(ctx, r, namespace, page, list)
		}
		if err != nil {
			found.remaining = found.before
			return found, err
		}
		page.Continue = list.Continue
	}
	if found.before == 0 {
		return found, nil
	}
	var err error
	found.remaining, err = count(ctx, endpoint)
	return found, err
}

// add counts objects, and their finalizers.
func (f *content) add(items []*metav1.PartialObjectMetadata) {
	f.before += len(items)
	for _, item := range items {
		for _, finalizer := range item.Finalizers {
			f.finalizers[finalizer]++
		}
	}
}

// deletePage deletes what page has listed, if it was the namespace's: if the namespace is
// still there after the list, nothing of the list belongs to another that has its name.
// The deletion is of the list's version for the same reason, not of what there is by then.
func (c *Controller) deletePage(ctx context.Context, r discovery.Resource, namespace *corev1.Namespace, page metav1.ListOptions, list *client.List[*metav1.PartialObjectMetadata]) error {
	switch live, err := c.stillThere(ctx, namespace); {
	case err != nil:
		return err
	case live == nil:
		return errGone
	}
	if page.Continue == "" && list.ResourceVersion != "" && list.ResourceVersion != "0" {
		page.ResourceVersion, page.ResourceVersionMatch = list.ResourceVersion, metav1.ResourceVersionMatchExact
	}
	endpoint := client.Metadata(c.client, r.GroupVersionResource()).Namespace(namespace.Name)
	return c.pace.Do(ctx, func() error {
		if r.Supports("deletecollection") {
			if err := endpoint.DeleteCollection(ctx, inBackground(), page); !apierrors.IsMethodNotSupported(err) {
				return err
			}
		}
		return deleteEach(ctx, endpoint, list.Items)
	})
}

func inBackground() metav1.DeleteOptions {
	return metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
}

// count returns how many objects there are.
func count(ctx context.Context, endpoint client.Resource[*metav1.PartialObjectMetadata]) (n int, err error) {
	list, err := endpoint.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	n = len(list.Items)
	if list.RemainingItemCount != nil {
		n += int(*list.RemainingItemCount)
	}
	return n, nil
}

// deleteEach deletes the objects of items, and not others that have their names by now.
func deleteEach(ctx context.Context, endpoint client.Resource[*metav1.PartialObjectMetadata], items []*metav1.PartialObjectMetadata) error {
	for _, item := range items {
		opts := inBackground()
		opts.Preconditions = metav1.NewUIDPreconditions(string(item.UID))
		err := endpoint.Delete(ctx, item.Name, opts)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// finalize takes the finalizer out, upon which the server removes the
// namespace.
func (c *Controller) finalize(ctx context.Context, namespace *corev1.Namespace) error {
	update := namespace.DeepCopy()
	update.Spec.Finalizers = slices.DeleteFunc(update.Spec.Finalizers, func(f corev1.FinalizerName) bool {
		return f == corev1.FinalizerKubernetes
	})
	err := c.api.SubResource("finalize").Update(ctx, namespace.Name, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
