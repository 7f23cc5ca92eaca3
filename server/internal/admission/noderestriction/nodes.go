package noderestriction

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// checkNode refuses changes of other Nodes, and those by which a node could draw workloads
// to itself that are not meant for it: of taints, owners, and protected labels.
func (w *write) checkNode() error {
	if w.Name != w.node {
		return w.forbid("node %q is not allowed to modify node %q", w.node, w.Name)
	}
	if w.Operation != registry.Create && w.Operation != registry.Update {
		return nil
	}
	node, ok := w.Object.(*corev1.Node)
	if !ok {
		return w.forbid("unexpected type %T", w.Object)
	}
	if w.Operation == registry.Create {
		if configSource(node) != nil {
			return w.forbid("node %q is not allowed to create pods with a non-nil configSource", w.node) // the words are Kubernetes'
		}
		if labels := protectedLabels(node.Labels, nil); len(labels) > 0 {
			return w.forbid("node %q is not allowed to set the following labels: %s", w.node, strings.Join(labels, ", "))
		}
		return nil
	}
	old, ok := w.Old.(*corev1.Node)
	if !ok {
		return w.forbid("unexpected type %T", w.Old)
	}
	switch {
	case configSource(node) != nil && !equality.Semantic.DeepEqual(configSource(node), configSource(old)):
		return w.forbid("node %q is not allowed to update configSource to a new non-nil configSource", w.node)
	case !equality.Semantic.DeepEqual(node.Spec.Taints, old.Spec.Taints):
		return w.forbid("node %q is not allowed to modify taints", w.node)
	case !equality.Semantic.DeepEqual(node.OwnerReferences, old.OwnerReferences):
		return w.forbid("node %q is not allowed to modify ownerReferences", w.node)
	}
	if labels := protectedLabels(node.Labels, old.Labels); len(labels) > 0 {
		return w.forbid("is not allowed to modify labels: %s", strings.Join(labels, ", "))
	}
	return nil
}

// configSource returns what kubelets of former times took their configuration from.
func configSource(node *corev1.Node) *corev1.NodeConfigSource {
	return node.Spec.ConfigSource //nolint:staticcheck // a node must not set it although it is deprecated
}

// protectedLabels returns which of the labels that differ a node may not set, in order.
func protectedLabels(labels, old map[string]string) []string {
	protected := map[string]bool{}
	note := func(a, b map[string]string) {
		for key, value := range a {
			if other, ok := b[key]; (!ok || other != value) && isProtected(key) {
				protected[key] = true
			}
		}
	}
	note(labels, old)
	note(old, labels)
	return slices.Sorted(maps.Keys(protected))
}

// nodeLabels are the labels of Kubernetes' own domains that kubelets set; those below
// kubelet.kubernetes.io and node.kubernetes.io are theirs, too.
var nodeLabels = map[string]bool{
	corev1.LabelHostname: true, corev1.LabelOSStable: true, corev1.LabelArchStable: true,
	corev1.LabelTopologyZone: true, corev1.LabelTopologyRegion: true, corev1.LabelInstanceTypeStable: true,
	corev1.LabelFailureDomainBetaZone: true, corev1.LabelFailureDomainBetaRegion: true, corev1.LabelInstanceType: true,
	"beta.kubernetes.io/os": true, "beta.kubernetes.io/arch": true,
}

// isProtected reports whether a node may not set a label. Labels outside of Kubernetes'
// domains are free.
func isProtected(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	switch {
	case !ok:
		return false
	case isBelow(domain, corev1.LabelNamespaceNodeRestriction):
		return true
	case !isBelow(domain, "kubernetes.io") && !isBelow(domain, "k8s.io"):
		return false
	}
	return !nodeLabels[key] && !isBelow(domain, "kubelet.kubernetes.io") && !isBelow(domain, "node.kubernetes.io")
}

// isBelow reports whether a domain is another one or part of it.
func isBelow(domain, other string) bool {
	return domain == other || strings.HasSuffix(domain, "."+other)
}

// checkClaim refuses all changes of claims but those of a volume that was resized.
func (w *write) checkClaim() error {
	if w.Subresource != "status" {
		return w.forbid("may only update PVC status")
	}
	old, ok := w.Old.(*corev1.PersistentVolumeClaim)
	claim, same := w.Object.(*corev1.PersistentVolumeClaim)
	if !ok || !same || !equality.Semantic.DeepEqual(withoutSize(old), withoutSize(claim)) {
		return w.forbid("node %q is not allowed to update fields other than status.capacity, status.conditions, status.allocatedResources and status.allocatedResourceStatuses", w.node)
	}
	return nil
}

func withoutSize(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim = claim.DeepCopy()
	claim.ResourceVersion, claim.ManagedFields = "", nil
	claim.Status.Capacity, claim.Status.Conditions = nil, nil
	claim.Status.AllocatedResources, claim.Status.AllocatedResourceStatuses = nil, nil
	return claim
}

func (w *write) checkLease() error {
	if w.Namespace != corev1.NamespaceNodeLease {
		return w.forbid("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	return w.checkName("can only access node lease with the same name as the requesting node")
}

// checkResourceSlice refuses slices of other nodes: the authorizer sees neither that of a
// new one nor those that a deletecollection finds.
func (w *write) checkResourceSlice() error {
	isOwn := func(o resource.Object) bool {
		slice, ok := o.(*resourcev1.ResourceSlice)
		return ok && slice.Spec.NodeName != nil && *slice.Spec.NodeName == w.node
	}
	switch {
	case w.Operation == registry.Delete && !isOwn(w.Old):
		return w.forbid("can only delete ResourceSlice with the same NodeName as the requesting node")
	case w.Operation == registry.Create && !isOwn(w.Object):
		return w.forbid("can only create ResourceSlice with the same NodeName as the requesting node")
	case w.Operation == registry.Update && (!isOwn(w.Object) || !isOwn(w.Old)):
		return w.forbid("can only update ResourceSlice with the same NodeName as the requesting node")
	}
	return nil
}
