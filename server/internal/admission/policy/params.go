package policy

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// paramKey names an object that is a parameter.
type paramKey struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// param is one parameter of a policy, or none. It is decoded when the policy is asked with it:
// a selector may find thousands, of megabytes.
type param struct {
	namespace, name string
	read            func(context.Context) (resource.Object, error) // nil: there is none
}

// object returns the parameter, or nil. It is shared and must not be modified. Before that it lets the
// requests of others run: thousands of parameters are decoded, and asked, for seconds.
func (p *param) object(ctx context.Context) (resource.Object, error) {
	if p.read == nil {
		return nil, nil
	}
	runqueue.FromContext(ctx).Yield()
	return p.read(ctx)
}

// resourceOf returns the resource whose objects a policy takes as parameters, or nil if
// there is none (any more).
func resourceOf(set *registry.Set, kind schema.GroupVersionKind) *resource.Resource {
	if table, ok := set.Resources().(interface {
		ByKind(gvk schema.GroupVersionKind) *resource.Resource
	}); ok {
		return table.ByKind(kind)
	}
	for _, res := range set.Resources().All() {
		if res.GroupVersionKind() == kind {
			return res
		}
	}
	return nil
}

// paramsFor returns the parameters with which a policy is evaluated for a binding: none
// once if it has none, and nothing if it is not evaluated. The error is one of the binding.
func (c *call) paramsFor(ctx context.Context, p *policy, b *binding) ([]param, error) {
	if p.params == nil || b.params == nil {
		return []param{{}}, nil
	}
	kind := schema.FromAPIVersionAndKind(p.params.APIVersion, p.params.Kind)
	res := resourceOf(c.policies.set, kind)
	if res == nil {
		return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", kind)
	}
	namespace, err := paramNamespace(res, b.params, c.match.Namespace)
	if err != nil {
		return nil, err
	}
	found, err := c.findParams(ctx, kind, res, namespace, b.params)
	if err != nil {
		return nil, err
	}
	if action := b.params.ParameterNotFoundAction; len(found) == 0 && action != nil && *action == admissionv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return found, nil
}

// paramNamespace returns where the parameters are: by default in the request's namespace.
func paramNamespace(res *resource.Resource, ref *admissionv1.ParamRef, request string) (string, error) {
	switch {
	case !res.Namespaced && ref.Namespace != "":
		return "", errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !res.Namespaced:
		return "", nil
	case ref.Namespace != "":
		return ref.Namespace, nil
	case request == "":
		return "", errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	}
	return request, nil
}

func (c *call) findParams(ctx context.Context, kind schema.GroupVersionKind, res *resource.Resource, namespace string, ref *admissionv1.ParamRef) ([]param, error) {
	r := c.policies.set.For(res)
	if ref.Name != "" {
		obj, err := c.namedParam(ctx, r, paramKey{kind, namespace, ref.Name})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []param{{namespace, ref.Name, func(context.Context) (resource.Object, error) { return obj, nil }}}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
	if err != nil {
		return nil, err
	}
	snapshot, err := r.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if res.Namespaced {
		prefix = namespace + "/"
	}
	var found []param
	for o := range snapshot.Range(prefix, "") {
		if selector.Matches(o.Attributes.Labels) {
			found = append(found, param{o.Attributes.Namespace, o.Attributes.Name, func(ctx context.Context) (resource.Object, error) {
				return c.policies.cachedParam(ctx, kind, r, o)
			}})
		}
	}
	return found, nil
}

// cachedParam returns the parameter that a cache has, decoded.
func (p *Policies) cachedParam(ctx context.Context, kind schema.GroupVersionKind, r registry.Registry, o *watchcache.Object) (resource.Object, error) {
	version := versionOf(kind, o)
	if obj := p.params.find(version); obj != nil {
		return obj, nil
	}
	obj, err := registry.DecodeAs[resource.Object](ctx, r, o)
	if err != nil {
		return nil, err
	}
	sayKind(obj, kind)
	p.params.keep(version, obj, o.JSON())
	return obj, nil
}

// namedParam reads a parameter once for a request.
func (c *call) namedParam(ctx context.Context, r registry.Registry, key paramKey) (resource.Object, error) {
	if known, ok := c.params[key]; ok {
		return known, nil
	}
	obj, err := r.Get(ctx, key.namespace, key.name)
	if err != nil {
		return nil, err
	}
	sayKind(obj, key.kind)
	if c.params == nil {
		c.params = map[paramKey]resource.Object{}
	}
	c.params[key] = obj
	return obj, nil
}

func sayKind(obj resource.Object, kind schema.GroupVersionKind) {
	if obj.GetObjectKind().GroupVersionKind() != kind {
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
}
