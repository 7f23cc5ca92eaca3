package apiserver

import (
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/status"
)

var (
	scaleKind    = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	bindingKind  = corev1.SchemeGroupVersion.WithKind("Binding")
	evictionKind = policyv1.SchemeGroupVersion.WithKind("Eviction")
)

// getSubresource answers GET of any subresource but status.
func (s *Server) getSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	switch {
	case s.config.Registry == nil:
		return status.NoSuchPath()
	case q.subresource == "scale" && q.resource.Scale != nil:
		scale, err := s.config.Registry.For(q.resource).GetScale(r.Context(), q.namespace, q.name)
		if err != nil {
			return err
		}
		return writeResult(w, r, q.ofScale(), http.StatusOK, scale, nil)
	case s.config.Registry.For(q.resource).HasSubresource(q.subresource) && q.subresource != "finalize":
		return s.get(w, r, q)
	}
	return status.NoSuchPath()
}

// ofScale returns q for the Scale of its object, whose table has columns of its
// own.
func (q *request) ofScale() *request {
	scale := &resource.Resource{Group: scaleKind.Group, Version: scaleKind.Version, Kind: scaleKind.Kind}
	scale.Columns, scale.Row = builtin.Columns(scaleKind)
	of := *q
	of.resource = scale
	return &of
}

// createSubresource answers POST to a subresource.
func (s *Server) createSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	switch (schema.GroupResource{Group: q.resource.Group, Resource: q.resource.Plural + "/" + q.subresource}).String() {
	case "pods/binding":
		return s.bind(w, r, q)
	case "pods/eviction":
		return s.evict(w, r, q)
	case "serviceaccounts/token":
		return s.requestToken(w, r, q)
	}
	if s.config.Registry != nil && s.config.Registry.For(q.resource).HasSubresource(q.subresource) {
		return status.MethodNotSupported(q.resource, q.verb)
	}
	return status.NoSuchPath()
}

// bind answers POST to pods/binding, and to bindings with the pod's name in
// the body alone.
func (s *Server) bind(w http.ResponseWriter, r *http.Request, q *request) error {
	x, err := s.newWriter(w, r, q, createOptions)
	if err != nil {
		return err
	}
	pods, ok := s.config.Registry.Lookup("", "v1", "pods")
	if !ok {
		return status.NoSuchPath()
	}
	x.registry = pods
	binding := &corev1.Binding{}
	if err := x.decodeAs(bindingKind, binding); err != nil {
		return err
	}
	name := q.name
	if name == "" {
		name = binding.Name
	}
	if name == "" {
		return status.BadRequest("the binding must name the pod in metadata.name")
	}
	if _, err := x.registry.Bind(r.Context(), q.namespace, name, binding, x.opts); err != nil {
		return err
	}
	return writeObject(w, r, http.StatusCreated, success())
}

func (s *Server) evict(w http.ResponseWriter, r *http.Request, q *request) error {
	x, err := s.newWriter(w, r, q, createOptions)
	if err != nil {
		return err
	}
	eviction := &policyv1.Eviction{}
	if err := x.decodeAs(evictionKind, eviction); err != nil {
		return err
	}
	if x.opts.DryRun {
		if eviction.DeleteOptions == nil {
			eviction.DeleteOptions = &metav1.DeleteOptions{}
		}
		eviction.DeleteOptions.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := x.registry.Evict(r.Context(), q.namespace, q.name, eviction); err != nil {
		return err
	}
	return writeObject(w, r, http.StatusCreated, success())
}

func success() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess, Code: http.StatusCreated,
	}
}

// updateSubresource answers PUT of a subresource.
func (s *Server) updateSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	if err := s.writable(q); err != nil {
		return err
	}
	x, err := s.newWriter(w, r, q, updateOptions)
	if err != nil {
		return err
	}
	if q.subresource == "scale" {
		return x.updateScale()
	}
	replace, err := x.replacement()
	if err != nil {
		return err
	}
	result, err := x.registry.UpdateSubresource(r.Context(), q.namespace, q.name, q.subresource, replace, registry.UpdateOptions{WriteOptions: x.opts})
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, result)
}

// writable returns nil for a subresource that clients can PUT and PATCH.
func (s *Server) writable(q *request) error {
	switch {
	case s.config.Registry == nil:
		return status.MethodNotSupported(q.resource, q.verb)
	case q.subresource == "scale" && q.resource.Scale != nil:
		return nil
	case s.config.Registry.For(q.resource).HasSubresource(q.subresource):
		return nil
	}
	return status.NoSuchPath()
}

func (x *writer) updateScale() error {
	wanted := &autoscalingv1.Scale{}
	if err := x.decodeAs(scaleKind, wanted); err != nil {
		return err
	}
	if err := x.matchPath(wanted); err != nil {
		return err
	}
	scale, err := x.registry.UpdateScale(x.r.Context(), x.q.namespace, x.q.name, func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		return wanted, nil
	}, x.opts)
	if err != nil {
		return err
	}
	return writeObject(x.w, x.r, http.StatusOK, scale)
}

// patchSubresource answers PATCH of a subresource.
func (s *Server) patchSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	if err := s.writable(q); err != nil {
		return err
	}
	x, patch, err := s.newPatcher(w, r, q)
	if err != nil {
		return err
	}
	if q.subresource == "scale" {
		return x.patchScale(patch)
	}
	result, err := x.registry.PatchSubresource(r.Context(), q.namespace, q.name, q.subresource, patch, x.patchOptions())
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, result)
}

func (x *writer) patchScale(patch *patch.Patch) error {
	decode := func(patched []byte) (*autoscalingv1.Scale, error) {
		wanted := &autoscalingv1.Scale{}
		gvk, strict, err := resource.DecodeInto(resource.MediaTypeJSON, patched, scaleKind, wanted)
		if err != nil {
			return nil, bodyError(err, gvk, scaleKind)
		}
		return wanted, x.judge(strict)
	}
	scale, err := x.registry.PatchScale(x.r.Context(), x.q.namespace, x.q.name, patch, decode, x.patchOptions())
	if err != nil {
		return err
	}
	return writeObject(x.w, x.r, http.StatusOK, scale)
}
