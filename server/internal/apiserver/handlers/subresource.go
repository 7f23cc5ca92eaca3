package handlers

import (
	"net/http"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/discovery"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/registry/pod"
	"github.com/levelwire/levelwire/server/internal/registry/scale"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/status"
)

// getSubresource answers GET of any subresource but status.
func (h *Handlers) getSubresource(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	switch {
	case h.config.Registry == nil:
		return status.NoSuchPath()
	case q.Subresource == "scale" && q.Resource.Scale != nil:
		scale, err := scale.Get(r.Context(), h.config.Registry.For(q.Resource), q.Namespace, q.Name)
		if err != nil {
			return err
		}
		return encoding.WriteResult(w, r, ofScale(q), http.StatusOK, scale, nil)
	case h.config.Registry.For(q.Resource).HasSubresource(q.Subresource) && q.Subresource != "finalize":
		return h.get(w, r, q)
	}
	return notServed(q)
}

// notServed refuses a verb of a subresource that has others, or the subresource.
func notServed(q *request.Info) error {
	if discovery.HasSubresource(q.Resource, q.Subresource) {
		return status.MethodNotSupported(q.Resource, q.Verb)
	}
	return status.NoSuchPath()
}

// ofScale returns q for the Scale of its object, whose table has columns of its
// own.
func ofScale(q *request.Info) *request.Info {
	scale := &resource.Resource{Group: discovery.ScaleKind.Group, Version: discovery.ScaleKind.Version, Kind: discovery.ScaleKind.Kind}
	scale.Columns, scale.Row = builtin.Columns(discovery.ScaleKind)
	of := *q
	of.Resource = scale
	return &of
}

// createSubresource answers POST to a subresource.
func (h *Handlers) createSubresource(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	switch (schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Plural + "/" + q.Subresource}).String() {
	case "pods/binding":
		return h.bind(w, r, q)
	case "pods/eviction":
		return h.evict(w, r, q)
	case "serviceaccounts/token":
		return h.requestToken(w, r, q)
	}
	return notServed(q)
}

// bind answers POST to pods/binding, and to bindings with the pod's name in
// the body alone.
func (h *Handlers) bind(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	x, err := h.newCreator(w, r, q)
	if err != nil {
		return err
	}
	pods, ok := h.config.Registry.Lookup("", "v1", "pods")
	if !ok {
		return status.NoSuchPath()
	}
	x.registry = pods
	binding := &corev1.Binding{}
	if err := x.decodeAs(discovery.BindingKind, binding); err != nil {
		return err
	}
	name := q.Name
	switch {
	case name == "" && binding.Name == "":
		return status.BadRequest("the binding must name the pod in metadata.name")
	case name == "":
		name = binding.Name
	case name != binding.Name:
		return status.BadRequest("name in URL does not match name in Binding object")
	}
	if _, err := pod.Bind(r.Context(), x.registry, q.Namespace, name, binding, x.opts); err != nil {
		return err
	}
	return encoding.WriteObject(w, r, http.StatusCreated, success())
}

func (h *Handlers) evict(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	x, err := h.newCreator(w, r, q)
	if err != nil {
		return err
	}
	eviction, err := x.decodeEviction()
	if err != nil {
		return err
	}
	if q.Name != eviction.Name {
		return status.BadRequest("name in URL does not match name in Eviction object")
	}
	if err := agreeOnDryRun(eviction, q.Query["dryRun"]); err != nil {
		return err
	}
	if _, err := pod.Evict(r.Context(), x.registry, q.Namespace, q.Name, eviction, x.opts); err != nil {
		return err
	}
	return encoding.WriteObject(w, r, http.StatusCreated, success())
}

// agreeOnDryRun has the options of an eviction say what its query says of a dry run. It refuses two
// that differ.
func agreeOnDryRun(eviction *policyv1.Eviction, query []string) error {
	if len(query) == 0 {
		return nil
	}
	if eviction.DeleteOptions == nil {
		eviction.DeleteOptions = &metav1.DeleteOptions{}
	}
	options := eviction.DeleteOptions
	if len(options.DryRun) > 0 && !slices.Equal(options.DryRun, query) {
		return status.BadRequest("Non-matching dry-run options in request and content: %v and %v", query, options.DryRun)
	}
	options.DryRun = slices.Clone(query)
	return nil
}

// decodeEviction reads an Eviction of either version that kube-apiserver takes: policy/v1beta1 is
// what older programs that drain nodes send, and says the same.
func (x *writer) decodeEviction() (*policyv1.Eviction, error) {
	eviction := &policyv1.Eviction{}
	gvk, strict, err := resource.DecodeInto(x.mediaType, x.body, discovery.EvictionKind, eviction)
	before := policyv1beta1.SchemeGroupVersion.WithKind(discovery.EvictionKind.Kind)
	switch {
	case err == nil:
		return eviction, x.judge(strict, discovery.EvictionKind)
	case gvk != before:
		return nil, x.undecodable(err, gvk, discovery.EvictionKind, x.body)
	}
	older := &policyv1beta1.Eviction{}
	if err := x.decodeAs(before, older); err != nil {
		return nil, err
	}
	return &policyv1.Eviction{ObjectMeta: older.ObjectMeta, DeleteOptions: older.DeleteOptions}, nil
}

func success() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess, Code: http.StatusCreated,
	}
}

// updateSubresource answers PUT of a subresource.
func (h *Handlers) updateSubresource(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if err := h.writable(q); err != nil {
		return err
	}
	x, err := h.newReplacer(w, r, q)
	if err != nil {
		return err
	}
	if q.Subresource == "scale" {
		return x.updateScale()
	}
	replace, err := x.replacement()
	if err != nil {
		return err
	}
	result, err := x.registry.UpdateSubresource(r.Context(), q.Namespace, q.Name, q.Subresource, replace, registry.UpdateOptions{WriteOptions: x.opts})
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, result)
}

// writable returns nil for a subresource that clients can PUT and PATCH.
func (h *Handlers) writable(q *request.Info) error {
	switch {
	case h.config.Registry == nil:
		return status.MethodNotSupported(q.Resource, q.Verb)
	case q.Subresource == "scale" && q.Resource.Scale != nil:
		return nil
	case h.config.Registry.For(q.Resource).HasSubresource(q.Subresource) && !(q.Subresource == "finalize" && q.Verb == request.VerbPatch):
		return nil
	}
	return notServed(q)
}

func (x *writer) updateScale() error {
	wanted := &autoscalingv1.Scale{}
	if err := x.decodeAs(discovery.ScaleKind, wanted); err != nil {
		return err
	}
	if err := x.matchPath(wanted); err != nil {
		return err
	}
	scale, err := scale.Update(x.r.Context(), x.registry, x.q.Namespace, x.q.Name, func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		return wanted, nil
	}, x.opts)
	if err != nil {
		return err
	}
	return encoding.WriteObject(x.w, x.r, http.StatusOK, scale)
}

// patchSubresource answers PATCH of a subresource.
func (h *Handlers) patchSubresource(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if err := h.writable(q); err != nil {
		return err
	}
	x, patch, err := h.newPatcher(w, r, q)
	if err != nil {
		return err
	}
	if q.Subresource == "scale" {
		return x.patchScale(patch)
	}
	result, err := x.registry.PatchSubresource(r.Context(), q.Namespace, q.Name, q.Subresource, patch, x.patchOptions(patch))
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, result)
}

func (x *writer) patchScale(patch *patch.Patch) error {
	decode := func(patched []byte) (*autoscalingv1.Scale, error) {
		wanted := &autoscalingv1.Scale{}
		_, strict, err := resource.DecodeInto(resource.MediaTypeJSON, patched, discovery.ScaleKind, wanted)
		if err != nil {
			if patch.IsStrategic() {
				err = strategicWords(err, patched, &autoscalingv1.Scale{})
			}
			return nil, invalidPatch(patch, patched, err.Error())
		}
		return wanted, x.judgePatched(patch, patched, strict)
	}
	scale, err := scale.Patch(x.r.Context(), x.registry, x.q.Namespace, x.q.Name, patch, decode, x.patchOptions(patch))
	if err != nil {
		return err
	}
	return encoding.WriteObject(x.w, x.r, http.StatusOK, scale)
}
