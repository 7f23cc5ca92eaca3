package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/admission/rules"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// request is one write on its way through the webhooks. It belongs to one goroutine; the
// versions that it has made may be read by others.
type request struct {
	plugin   *Plugin
	q        *registry.Request
	user     auth.User
	obj, old resource.Object // of q.Kind
	versions map[rules.Endpoint]*version
	others   []rules.Endpoint // see equivalents
	known    bool
	// authorizer answers match conditions; nil until one is evaluated.
	authorizer *expressions.Authorizer
}

// version is the objects of a request as of one endpoint, encoded.
type version struct {
	endpoint    rules.Endpoint
	resource    *resource.Resource // nil for objects that are of another kind than their resource
	object, old []byte             // nil where there is none
	// The objects that were encoded, and what expressions see of them; see input.
	shown, shownOld resource.Object
	input           *cel.Input
}

// newRequest returns nil if webhooks are not asked about a request: those of the
// configurations of admission themselves, so that a mistake can be taken back, and reviews.
func (p *Plugin) newRequest(ctx context.Context, q *registry.Request) (*request, error) {
	if rules.ExemptFromWebhooks(q.Kind().GroupKind()) {
		return nil, nil
	}
	r := &request{plugin: p, q: q, versions: map[rules.Endpoint]*version{}}
	r.user, _ = auth.UserFrom(ctx)
	return r, r.refresh()
}

// refresh reads the objects again after a webhook has changed them.
func (r *request) refresh() (err error) {
	clear(r.versions)
	r.obj, r.old, err = r.q.Shown()
	return err
}

// namespace is that of the request. For a Namespace it is the Namespace itself.
func (r *request) namespace() string {
	if r.q.Namespace == "" && r.q.Resource.GroupResource() == (schema.GroupResource{Resource: "namespaces"}) {
		return r.q.Name
	}
	return r.q.Namespace
}

// endpoint is the one that the client has used.
func (r *request) endpoint() rules.Endpoint {
	return rules.Endpoint{Resource: gvr(r.q.Resource), Kind: r.q.Kind()}
}

func gvr(r *resource.Resource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// equivalents returns the endpoints that show the same objects, in other versions.
func (r *request) equivalents() []rules.Endpoint {
	if r.known {
		return r.others
	}
	r.known = true
	if r.q.Resource.Stored().StorePrefix == "" {
		return nil
	}
	stored := r.q.Resource.Stored().StorePrefix
	for _, res := range r.plugin.set.Resources().All() {
		if res.Stored().StorePrefix != stored || res == r.q.Resource {
			continue
		}
		e := rules.Endpoint{Resource: gvr(res), Kind: res.GroupVersionKind()}
		if !r.ofResource() {
			e.Kind = r.q.Kind()
		}
		r.others = append(r.others, e)
	}
	return r.others
}

// ofResource reports whether the objects are of the resource's kind, and not a Scale or
// the like.
func (r *request) ofResource() bool { return r.q.Kind() == r.q.Resource.GroupVersionKind() }

// asked returns the request as rules see it, without objects.
func (r *request) asked() *rules.Request {
	return &rules.Request{
		Operation: operationOf(r.q.Operation), Endpoint: r.endpoint(), Subresource: r.q.Subresource,
		Namespace: r.namespace(), Name: r.q.Name, Equivalents: r.equivalents,
	}
}

// matches reports whether a hook is called about the request, and with which version.
func (r *request) matches(ctx context.Context, h *hook) (*version, error) {
	asked := r.asked()
	if r.obj != nil {
		asked.Object = r.obj
	}
	if r.old != nil {
		asked.Old = r.old
	}
	endpoint, ok, err := h.matcher.Match(ctx, asked, r.plugin.namespaces)
	if err != nil || !ok {
		return nil, err
	}
	v, err := r.version(ctx, endpoint)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if ok, err = r.matchesConditions(ctx, h, v); err != nil {
		return nil, apierrors.NewForbidden(r.q.Resource.GroupResource(), r.q.Name, err)
	}
	if !ok {
		return nil, nil
	}
	return v, nil
}

// version returns the objects as of an endpoint.
func (r *request) version(ctx context.Context, endpoint rules.Endpoint) (*version, error) {
	if v := r.versions[endpoint]; v != nil {
		return v, nil
	}
	v := &version{endpoint: endpoint}
	if r.ofResource() {
		v.resource = r.q.Resource
		if endpoint.Resource != gvr(r.q.Resource) {
			v.resource = r.plugin.set.Resources().Lookup(endpoint.Resource.Group, endpoint.Resource.Version, endpoint.Resource.Resource)
		}
		if v.resource == nil {
			return nil, fmt.Errorf("%v is not served any more", endpoint.Resource)
		}
	}
	var err error
	if v.shown, v.object, err = r.encode(ctx, v, r.obj); err != nil {
		return nil, err
	}
	if v.shownOld, v.old, err = r.encode(ctx, v, r.old); err != nil {
		return nil, err
	}
	r.versions[endpoint] = v
	return v, nil
}

// encode returns an object of the request in a version, and as JSON of it; nil if there is
// none.
func (r *request) encode(ctx context.Context, v *version, obj resource.Object) (resource.Object, []byte, error) {
	if obj == nil {
		return nil, nil, nil
	}
	if v.resource == nil {
		obj = expressions.Named(obj, v.endpoint.Kind)
		data, err := json.Marshal(obj)
		return obj, data, err
	}
	converted, err := convert(ctx, r.q.Resource, v.resource, obj)
	if err != nil {
		return nil, nil, err
	}
	data, err := v.resource.Marshal(converted)
	return converted, data, err
}

// convert returns an object of one version as of another. obj is not modified.
func convert(ctx context.Context, from, to *resource.Resource, obj resource.Object) (resource.Object, error) {
	if from == to {
		return obj, nil
	}
	stored := obj
	if from.ToStorage != nil {
		var err error
		if stored, err = from.ToStorage(ctx, obj); err != nil {
			return nil, err
		}
	}
	if to.FromStorage == nil {
		return stored, nil
	}
	return to.FromStorage(ctx, stored.DeepCopyObject().(resource.Object))
}

var errNotOfKind = errors.New("the patched object is of another kind")

// replace decodes an object that a webhook has patched, and puts it in the place of the
// request's. changed is false if the patch has changed nothing.
func (r *request) replace(ctx context.Context, v *version, patched []byte) (changed bool, err error) {
	var obj resource.Object
	if v.resource == nil {
		var ok bool
		if obj, ok = reflect.New(reflect.TypeOf(r.obj).Elem()).Interface().(resource.Object); !ok {
			return false, errNotOfKind
		}
		_, _, err = resource.DecodeInto(resource.MediaTypeJSON, patched, v.endpoint.Kind, obj)
	} else {
		obj, err = decodePatched(v.resource, patched)
	}
	if err != nil {
		return false, err
	}
	if same, err := r.encodeSame(v, obj); err == nil && string(same) == string(v.object) {
		return false, nil
	}
	if v.resource != nil {
		if obj, err = convert(ctx, v.resource, r.q.Resource, obj); err != nil {
			return false, err
		}
	}
	if err := r.q.Replace(ctx, obj); err != nil {
		return false, err
	}
	return true, r.refresh()
}

// decodePatched decodes what a webhook has made of an object of the resource.
func decodePatched(of *resource.Resource, patched []byte) (resource.Object, error) {
	obj, gvk, _, err := of.DecodeBody(resource.MediaTypeJSON, patched)
	if err == nil && gvk != of.GroupVersionKind() {
		err = &resource.KindMismatchError{Got: gvk, Want: of.GroupVersionKind()}
	}
	return obj, err
}

// encodeSame encodes an object that is of the version already.
func (r *request) encodeSame(v *version, obj resource.Object) ([]byte, error) {
	if v.resource != nil {
		return v.resource.Marshal(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(v.endpoint.Kind)
	return json.Marshal(obj)
}

// namespaces implements rules.Namespaces by the cache, and by the store if that does not
// have a namespace yet.
type namespaces struct{ set *registry.Set }

// Labels returns the labels of a namespace.
func (n namespaces) Labels(ctx context.Context, name string) (map[string]string, error) {
	r, ok := n.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	}
	obj, err := r.Get(ctx, "", name)
	if err != nil {
		return nil, err
	}
	return obj.GetLabels(), nil
}
