package nodeauthorizer

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/podreference"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// isRelated reports whether a pod that is bound to the node leads to the object that is
// asked for.
func (n *Authorizer) isRelated(ctx context.Context, node string, a *auth.Attributes) (bool, error) {
	switch a.Resource {
	case "pods":
		pod, err := find[*corev1.Pod](ctx, n.set, "", "pods", a.Namespace, a.Name)
		return pod != nil && pod.Spec.NodeName == node, err
	case "volumeattachments":
		attachment, err := find[*storagev1.VolumeAttachment](ctx, n.set, storagev1.GroupName, "volumeattachments", "", a.Name)
		return attachment != nil && attachment.Spec.NodeName == node, err
	case "resourceslices":
		slice, err := find[*resourcev1.ResourceSlice](ctx, n.set, resourcev1.GroupName, "resourceslices", "", a.Name)
		return slice != nil && slice.Spec.NodeName != nil && *slice.Spec.NodeName == node, err
	case "podcertificaterequests":
		request, err := find[*certificatesv1.PodCertificateRequest](ctx, n.set, certificatesv1.GroupName, "podcertificaterequests", a.Namespace, a.Name)
		return request != nil && string(request.Spec.NodeName) == node, err
	case "persistentvolumes":
		volume, err := find[*corev1.PersistentVolume](ctx, n.set, "", "persistentvolumes", "", a.Name)
		if volume == nil || err != nil {
			return false, err
		}
		return n.usesVolume(ctx, node, volume)
	case "secrets":
		if is, err := n.podRefersTo(ctx, node, a.Resource, a.Namespace, a.Name); is || err != nil {
			return is, err
		}
		return n.volumeRefersTo(ctx, node, a.Namespace, a.Name)
	}
	return n.podRefersTo(ctx, node, a.Resource, a.Namespace, a.Name)
}

// find returns an object of a cache, or the zero value if there is none.
func find[T resource.Object](ctx context.Context, set *registry.Set, group, plural, namespace, name string) (T, error) {
	var none T
	r, objects, err := snapshot(ctx, set, group, plural)
	if err != nil {
		return none, err
	}
	o, ok := objects.Get(r.Resource().Key(namespace, name))
	if !ok {
		return none, nil
	}
	return registry.DecodeAs[T](ctx, r, o)
}

// snapshot returns the objects of a kind, with this server's own writes.
func snapshot(ctx context.Context, set *registry.Set, group, plural string) (registry.Registry, watchcache.Snapshot, error) {
	r, ok := set.Lookup(group, "v1", plural)
	if !ok {
		return r, watchcache.Snapshot{}, fmt.Errorf("%s are not served", plural)
	}
	if cache := r.Cache(); cache == nil || !cache.IsReady() {
		return r, watchcache.Snapshot{}, auth.ErrNotReady
	}
	objects, err := r.Snapshot(ctx)
	return r, objects, err
}

// podRefersTo reports whether a pod of the node refers to an object of its namespace. It
// reads only pods that have the name in them, and these once.
func (n *Authorizer) podRefersTo(ctx context.Context, node, resource, namespace, name string) (bool, error) {
	pods, objects, err := snapshot(ctx, n.set, "", "pods")
	if err != nil {
		return false, err
	}
	if err := n.follower.CatchUp(ctx); err != nil {
		return false, err
	}
	var room [128]string
	var scratch []byte
	for _, key := range n.index.podsOf(room[:0], node, namespace) {
		o, ok := objects.Get(key)
		if !ok || o.Attributes.Fields[n.index.nodeField] != node || resource != podreference.Claims && !hasString(o.ReadJSON(&scratch), name) {
			continue
		}
		references, err := o.Form(referencesForm, func(o *watchcache.Object) ([]byte, error) { return encodeReferences(ctx, pods, o) })
		if err != nil {
			return false, err
		}
		if hasReference(references, resource, name) {
			return true, nil
		}
	}
	return false, nil
}

// hasString reports whether JSON has a string. It looks for it with its quotes: a node writes what is in its mirror pods,
// and could have them full of what is almost the string. It does not allocate for what can be a name.
func hasString(json []byte, s string) bool {
	if s == "" {
		return false
	}
	var room [256]byte
	quoted := append(append(append(room[:0], '"'), s...), '"')
	return bytes.Contains(json, quoted)
}

// referencesForm is kept with a cached pod and lists what it refers to: for each object a
// zero byte, the resource, a slash, the name, and a zero byte.
var referencesForm = watchcache.NewForm("references of a pod")

// encodeReferences returns the form of a pod. Mirror pods, which nodes create, lead to
// nothing: a node could grant itself what it likes.
func encodeReferences(ctx context.Context, pods registry.Registry, o *watchcache.Object) ([]byte, error) {
	pod, err := registry.DecodeAs[*corev1.Pod](ctx, pods, o)
	if err != nil {
		return nil, err
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil, nil
	}
	references := []byte{0}
	podreference.Each(pod, func(resource, name string) {
		references = append(references, resource...)
		references = append(references, '/')
		references = append(references, name...)
		references = append(references, 0)
	})
	return references, nil
}

// hasReference reports whether the form of a pod has a resource's name.
func hasReference(references []byte, resource, name string) bool {
	for len(references) > 1 && name != "" {
		references = references[1:]
		end := bytes.IndexByte(references, 0)
		if end == len(resource)+1+len(name) && string(references[:len(resource)]) == resource && string(references[len(resource)+1:end]) == name {
			return true
		}
		references = references[end:]
	}
	return false
}

// referencesTo returns the names that the form of a pod has for a resource.
func referencesTo(references []byte, resource string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for reference := range bytes.SplitSeq(references, []byte{0}) {
			if kind, name, _ := strings.Cut(string(reference), "/"); kind == resource && !yield(name) {
				return
			}
		}
	}
}

// usesVolume reports whether a pod of the node has the claim that the volume is bound to.
func (n *Authorizer) usesVolume(ctx context.Context, node string, volume *corev1.PersistentVolume) (bool, error) {
	claim := volume.Spec.ClaimRef
	if claim == nil {
		return false, nil
	}
	return n.podRefersTo(ctx, node, "persistentvolumeclaims", claim.Namespace, claim.Name)
}

// volumeRefersTo reports whether a volume that the node uses needs the secret to be mounted. Thousands of volumes may: it
// looks at those only that pods of the node claim.
func (n *Authorizer) volumeRefersTo(ctx context.Context, node, namespace, name string) (bool, error) {
	pods, objects, err := snapshot(ctx, n.set, "", "pods")
	if err != nil {
		return false, err
	}
	if err := n.follower.CatchUp(ctx); err != nil {
		return false, err
	}
	secret := secretKey{namespace, name}
	if !n.index.isMounted(secret) {
		return false, nil
	}
	for _, key := range n.index.allPodsOf(node) {
		o, ok := objects.Get(key)
		if !ok || o.Attributes.Fields[n.index.nodeField] != node {
			continue
		}
		references, err := o.Form(referencesForm, func(o *watchcache.Object) ([]byte, error) { return encodeReferences(ctx, pods, o) })
		if err != nil {
			return false, err
		}
		of, _, _ := strings.Cut(key, "/")
		for claim := range referencesTo(references, podreference.Claims) {
			if is, err := n.claimNeeds(ctx, claimKey{of, claim}, secret); is || err != nil {
				return is, err
			}
		}
	}
	return false, nil
}

// claimNeeds reports whether a volume that is bound to a claim is mounted with a secret.
func (n *Authorizer) claimNeeds(ctx context.Context, claim claimKey, secret secretKey) (bool, error) {
	for _, name := range n.index.volumesOf(secret, claim) {
		volume, err := find[*corev1.PersistentVolume](ctx, n.set, "", "persistentvolumes", "", name)
		if err != nil {
			return false, err
		}
		if volume == nil || !slices.Contains(mountSecrets(volume), secret) {
			continue
		}
		if ref := volume.Spec.ClaimRef; ref != nil && (claimKey{ref.Namespace, ref.Name}) == claim {
			return true, nil
		}
	}
	return false, nil
}
