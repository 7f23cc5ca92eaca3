package registry

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// subresourceName is a subresource of a kind.
type subresourceName struct {
	schema.GroupResource
	subresource string
}

// part is what a subresource that shows the whole object changes of it.
type part struct {
	// take takes the part from the object that a client sent into a copy of the
	// current one. It returns false if the objects have other Go types.
	take func(current, wanted resource.Object) bool
	// metadata is what changes with it.
	metadata resource.Metadata
}

// merges are the subresources that show the whole object and change a part of it.
var merges = map[subresourceName]part{
	{schema.GroupResource{Resource: "namespaces"}, "finalize"}:                                               {mergeFinalize, resource.AllMetadata},
	{schema.GroupResource{Resource: "pods"}, "ephemeralcontainers"}:                                          {take: mergeEphemeralContainers},
	{schema.GroupResource{Resource: "pods"}, "resize"}:                                                       {take: mergeResize},
	{schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}, "approval"}: {mergeApproval, resource.AllMetadata},
}

// HasSubresource reports whether UpdateSubresource and PatchSubresource know a
// subresource of the kind.
func (r Registry) HasSubresource(subresource string) bool {
	if subresource == statusEndpoint.Subresource {
		return r.res.Status
	}
	_, ok := merges[subresourceName{r.res.GroupResource(), subresource}]
	return ok
}

// UpdateSubresource is Update for a subresource that shows the whole object:
// status, namespaces/finalize, pods/ephemeralcontainers, pods/resize,
// certificatesigningrequests/approval.
func (r Registry) UpdateSubresource(ctx context.Context, namespace, name, subresource string, updater Updater, opts UpdateOptions) (*Result, error) {
	if subresource == statusEndpoint.Subresource {
		return r.UpdateStatus(ctx, namespace, name, updater, opts)
	}
	if !r.HasSubresource(subresource) {
		return nil, r.noSubresource(subresource)
	}
	return r.UpdateThrough(ctx, Endpoint{Subresource: subresource, Scope: ScopeSubresource}, namespace, name, updater, opts)
}

// PatchSubresource is Patch for the subresources of UpdateSubresource.
func (r Registry) PatchSubresource(ctx context.Context, namespace, name, subresource string, p *patch.Patch, opts PatchOptions) (*Result, error) {
	if subresource == statusEndpoint.Subresource {
		return r.PatchStatus(ctx, namespace, name, p, opts)
	}
	if !r.HasSubresource(subresource) {
		return nil, r.noSubresource(subresource)
	}
	return r.patch(ctx, Endpoint{Subresource: subresource, Scope: ScopeSubresource}, namespace, name, p, opts)
}

func (r Registry) noSubresource(subresource string) error {
	return status.BadRequest("%s have no subresource %q", r.res.GroupResource(), subresource)
}

// mergeSubresource returns the current object with what the subresource can
// change taken from wanted.
func (w *pendingWrite) mergeSubresource(wanted resource.Object) (resource.Object, error) {
	changed, ok := merges[subresourceName{w.registry.res.GroupResource(), w.endpoint.Subresource}]
	if !ok {
		return nil, w.registry.noSubresource(w.endpoint.Subresource)
	}
	obj := w.current.object.DeepCopyObject().(resource.Object)
	obj.SetName(wanted.GetName())
	obj.SetNamespace(wanted.GetNamespace())
	obj.SetUID(wanted.GetUID())
	obj.SetResourceVersion(wanted.GetResourceVersion())
	obj.SetManagedFields(wanted.GetManagedFields())
	changed.metadata.Take(obj, wanted)
	if !changed.take(obj, wanted) {
		return nil, w.registry.noSubresource(w.endpoint.Subresource)
	}
	return obj, nil
}

func mergeFinalize(current, wanted resource.Object) bool {
	ns, ok := current.(*corev1.Namespace)
	from, same := wanted.(*corev1.Namespace)
	if ok = ok && same; ok {
		ns.Spec.Finalizers = from.Spec.Finalizers
	}
	return ok
}

func mergeEphemeralContainers(current, wanted resource.Object) bool {
	pod, ok := current.(*corev1.Pod)
	from, same := wanted.(*corev1.Pod)
	if ok = ok && same; ok {
		pod.Spec.EphemeralContainers = from.Spec.EphemeralContainers
	}
	return ok
}

// mergeResize takes the resources of the pod and of its containers. If there are other containers
// than the pod has, all is taken, so that validation refuses them.
func mergeResize(current, wanted resource.Object) bool {
	pod, ok := current.(*corev1.Pod)
	from, same := wanted.(*corev1.Pod)
	if !ok || !same {
		return false
	}
	to, by := &pod.Spec, &from.Spec
	resources := to.Resources
	if by.Resources != nil { // of which older clients do not know
		resources = by.Resources
	}
	if len(to.Containers) != len(by.Containers) || len(to.InitContainers) != len(by.InitContainers) {
		pod.Spec = from.Spec
		to.Resources = resources
		return true
	}
	to.Resources = resources
	to.Containers = resized(to.Containers, by.Containers)
	to.InitContainers = resized(to.InitContainers, by.InitContainers)
	return true
}

// resized returns containers with the resources of others; the others, if these are not the same.
func resized(containers, from []corev1.Container) []corev1.Container {
	for i := range containers {
		if containers[i].Name != from[i].Name {
			return from
		}
		containers[i].Resources, containers[i].ResizePolicy = from[i].Resources, from[i].ResizePolicy
	}
	return containers
}

func mergeApproval(current, wanted resource.Object) bool {
	request, ok := current.(*certificatesv1.CertificateSigningRequest)
	from, same := wanted.(*certificatesv1.CertificateSigningRequest)
	if ok = ok && same; ok {
		request.Status.Conditions = from.Status.Conditions
	}
	return ok
}
