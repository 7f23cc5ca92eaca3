package policy

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/admission/rules"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// call is one request as policies see it. What they need of it is made when the first one
// needs it, and shared by all. It is used by one goroutine.
type call struct {
	policies *Policies
	request  *registry.Request
	user     auth.User
	match    rules.Request

	obj, old resource.Object // as the client's endpoint has them
	views    map[rules.Endpoint]*view
	asked    *expressions.Authorizer
	params   map[paramKey]resource.Object // that bindings name

	namespaces map[string]*corev1.Namespace
}

// view is the objects of a request in the version that a policy is for.
type view struct {
	endpoint rules.Endpoint
	obj, old resource.Object
	// input has no params and no authorizer.
	input cel.Input
}

// newCall returns the request as policies see it, or nil if none applies to it.
func (p *Policies) newCall(ctx context.Context, q *registry.Request, x *index) (*call, []*hook, error) {
	if rules.ExemptFromPolicies(q.Kind().GroupKind()) {
		return nil, nil, nil
	}
	if err := p.catchUp(ctx); err != nil {
		return nil, nil, err
	}
	t := x.current()
	if len(t.hooks) == 0 {
		return nil, nil, nil
	}
	c := &call{policies: p, request: q}
	operation, ok := operations[q.Operation]
	if !ok {
		return nil, nil, nil
	}
	c.match = rules.Request{
		Operation: operation, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
		Endpoint:    rules.Endpoint{Resource: q.Resource.GroupVersionResource(), Kind: q.Kind()},
		Equivalents: c.equivalents,
	}
	hooks := t.candidatesFor(&c.match)
	if len(hooks) == 0 {
		return nil, nil, nil
	}
	c.user, _ = auth.UserFrom(ctx)
	if c.isNamespace() {
		c.match.Namespace = q.Name
	}
	if err := c.show(); err != nil {
		return nil, nil, err
	}
	return c, hooks, nil
}

var operations = map[registry.Operation]admissionv1.OperationType{
	registry.Create: admissionv1.Create, registry.Update: admissionv1.Update, registry.Delete: admissionv1.Delete,
}

func (c *call) isNamespace() bool {
	return c.request.Resource.Group == "" && c.request.Resource.Plural == "namespaces"
}

// show reads the objects of the request, which a mutation may have changed.
func (c *call) show() error {
	obj, old, err := c.request.Shown()
	if err != nil {
		return err
	}
	c.obj, c.old, c.views = obj, old, nil
	c.match.Object, c.match.Old = nil, nil
	if obj != nil {
		c.match.Object = obj
	}
	if old != nil {
		c.match.Old = old
	}
	return nil
}

// equivalents returns the other versions of the resource.
func (c *call) equivalents() []rules.Endpoint {
	res, kind := c.request.Resource, c.request.Kind()
	var list []rules.Endpoint
	for _, other := range c.policies.set.Resources().All() {
		if other == res || other.Stored() != res.Stored() {
			continue
		}
		e := rules.Endpoint{Resource: other.GroupVersionResource(), Kind: other.GroupVersionKind()}
		if kind != res.GroupVersionKind() { // of a subresource with a body of its own
			e.Kind = kind
		}
		list = append(list, e)
	}
	return list
}

// Labels implements rules.Namespaces.
func (c *call) Labels(ctx context.Context, name string) (map[string]string, error) {
	namespace, err := c.namespace(ctx, name)
	if err != nil {
		return nil, err
	}
	return namespace.Labels, nil
}

func (c *call) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	if n := c.namespaces[name]; n != nil {
		return n, nil
	}
	r, ok := c.policies.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	n, err := registry.GetAs[*corev1.Namespace](ctx, r, "", name)
	if err != nil {
		return nil, err
	}
	if c.namespaces == nil {
		c.namespaces = map[string]*corev1.Namespace{}
	}
	c.namespaces[name] = n
	return n, nil
}

// view returns the request as an endpoint shows it.
func (c *call) view(ctx context.Context, endpoint rules.Endpoint) (*view, error) {
	if v := c.views[endpoint]; v != nil {
		return v, nil
	}
	v := &view{endpoint: endpoint}
	var err error
	if v.obj, err = c.convert(ctx, c.obj, endpoint); err != nil {
		return nil, err
	}
	if v.old, err = c.convert(ctx, c.old, endpoint); err != nil {
		return nil, err
	}
	v.input = cel.Input{Object: expressions.Object(v.obj), OldObject: expressions.Object(v.old), Request: expressions.Request(c.request, &c.match, endpoint, c.user)}
	if name := c.request.Namespace; name != "" && !c.isNamespace() {
		namespace, err := c.namespace(ctx, name)
		if err != nil {
			return nil, err
		}
		v.input.Namespace = expressions.Namespace(namespace)
	}
	if c.views == nil {
		c.views = map[rules.Endpoint]*view{}
	}
	c.views[endpoint] = v
	return v, nil
}

// convert returns an object of the request's kind in the version of another endpoint. The
// object is not modified.
func (c *call) convert(ctx context.Context, obj resource.Object, to rules.Endpoint) (resource.Object, error) {
	if obj == nil || to.Kind == c.request.Kind() {
		return obj, nil
	}
	target := c.policies.set.Resources().Lookup(to.Resource.Group, to.Resource.Version, to.Resource.Resource)
	if target == nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("%v is not served any more", to.Resource))
	}
	return convert(ctx, obj, c.request.Resource, target)
}

// convert converts an object between two versions of a resource, by way of the stored one.
func convert(ctx context.Context, obj resource.Object, from, to *resource.Resource) (resource.Object, error) {
	var err error
	if from.Storage != nil {
		if obj, err = from.ToStorage(ctx, obj); err != nil {
			return nil, err
		}
	}
	if to.Storage != nil {
		// FromStorage may take its argument apart.
		if obj, err = to.FromStorage(ctx, obj.DeepCopyObject().(resource.Object)); err != nil {
			return nil, err
		}
	}
	return expressions.Named(obj, to.GroupVersionKind()), nil
}

// input returns what the expressions of a policy see, with one of its parameters, or nil.
func (c *call) input(v *view, param resource.Object) *cel.Input {
	input := v.input
	if param != nil {
		input.Params = expressions.Object(param)
	}
	if c.asked == nil {
		c.asked = expressions.NewAuthorizer(c.policies.authorizer)
	}
	expressions.SetAuthorizer(&input, c.asked, c.request, c.match.Namespace, c.user)
	return &input
}
