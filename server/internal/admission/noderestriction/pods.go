package noderestriction

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/podreference"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

func (p *Plugin) admitPod(ctx context.Context, w *write) error {
	switch {
	case w.Subresource == "status":
		return w.checkPodStatus()
	case w.Subresource == "eviction":
		pod, err := find[*corev1.Pod](ctx, p.set, "pods", w.Namespace, w.Name)
		if err != nil {
			return err
		}
		if pod.Spec.NodeName != w.node {
			return w.forbid("node %s can only evict pods with spec.nodeName set to itself", w.node)
		}
		return nil
	case w.Subresource != "":
		return w.forbid("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", w.Subresource)
	case w.Operation == registry.Create:
		return p.admitMirrorPod(ctx, w)
	case w.Operation == registry.Delete:
		if pod, ok := w.Old.(*corev1.Pod); !ok || pod.Spec.NodeName != w.node {
			return w.forbid("node %q can only delete pods with spec.nodeName set to itself", w.node)
		}
		return nil
	}
	return w.forbid("unexpected operation \"UPDATE\", node %q can only create and delete mirror pods", w.node)
}

// find returns an object of the API's core group, as it was when it was last written
// through this server, or later.
func find[T resource.Object](ctx context.Context, set *registry.Set, plural, namespace, name string) (T, error) {
	return findIn[T](ctx, set, "", plural, namespace, name)
}

// checkPodStatus refuses the status of pods on other nodes, and of what a status is not a
// node's to say: labels, and the claims that a pod's node may read.
func (w *write) checkPodStatus() error {
	old, ok := w.Old.(*corev1.Pod)
	pod, same := w.Object.(*corev1.Pod)
	switch {
	case !ok || !same || w.Operation != registry.Update:
		return w.forbid("node %q can only update the status of pods", w.node)
	case old.Spec.NodeName != w.node:
		return w.forbid("node %q can only update pod status for pods with spec.nodeName set to itself", w.node)
	case !labels.Equals(old.Labels, pod.Labels):
		return w.forbid("node %q cannot update labels through pod status", w.node)
	case !equality.Semantic.DeepEqual(old.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses):
		return w.forbid("node %q cannot update resource claim statues", w.node) // the word is Kubernetes'
	case !equality.Semantic.DeepEqual(old.Status.ExtendedResourceClaimStatus, pod.Status.ExtendedResourceClaimStatus):
		return w.forbid("node %q cannot update extended resource claim status", w.node)
	case !equality.Semantic.DeepEqual(old.Status.NodeAllocatableResourceClaimStatuses, pod.Status.NodeAllocatableResourceClaimStatuses):
		return w.forbid("node %q cannot update node allocatable resource claim statuses", w.node)
	}
	return nil
}

// admitMirrorPod refuses pods that are not the node's own mirror pods: by a pod of its
// own making that refers to a secret, a node could read that.
func (p *Plugin) admitMirrorPod(ctx context.Context, w *write) error {
	pod, ok := w.Object.(*corev1.Pod)
	if !ok {
		return w.forbid("unexpected type %T", w.Object)
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return w.forbid("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, w.node)
	}
	if pod.Spec.NodeName != w.node {
		return w.forbid("node %q can only create pods with spec.nodeName set to itself", w.node)
	}
	if err := p.checkOwner(ctx, w, pod); err != nil {
		return err
	}
	what, known := apiObject(pod)
	switch {
	case !known:
		return w.forbid("error checking mirror pod for API references: unknown volume type for volume %q", what)
	case what != "":
		return w.forbid("node %q can not create pods that reference %s", w.node, what)
	}
	return nil
}

// checkOwner refuses a mirror pod that the garbage collector would not delete together
// with its Node.
func (p *Plugin) checkOwner(ctx context.Context, w *write, pod *corev1.Pod) error {
	if n := len(pod.OwnerReferences); n > 1 {
		return w.forbid("node %q can only create pods with a single owner reference set to itself", w.node)
	} else if n == 0 {
		return w.forbid("node %q can only create pods with an owner reference set to itself", w.node)
	}
	owner := &pod.OwnerReferences[0]
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != w.node:
		return w.forbid("node %q can only create pods with an owner reference set to itself", w.node)
	case owner.Controller == nil || !*owner.Controller:
		return w.forbid("node %q can only create pods with a controller owner reference set to itself", w.node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return w.forbid("node %q must not set blockOwnerDeletion on an owner reference", w.node)
	}
	node, err := find[*corev1.Node](ctx, p.set, "nodes", "", w.node)
	if err != nil {
		return err
	}
	if owner.UID != node.UID {
		return w.forbid("node %s UID mismatch: expected %s got %s", w.node, owner.UID, node.UID)
	}
	return nil
}

// apiObject returns the kind of an object that a pod refers to, or "" if it refers to none.
// known is false if that cannot be said of a volume, whose name it returns then.
func apiObject(pod *corev1.Pod) (what string, known bool) {
	found := map[string]bool{}
	podreference.Each(pod, func(resource, name string) {
		if name != "" || resource != podreference.Secrets && resource != podreference.ConfigMaps {
			found[resource] = true
		}
	})
	for _, resource := range []string{podreference.ServiceAccounts, podreference.Secrets, podreference.ConfigMaps, podreference.ResourceClaims, podreference.Claims} {
		if found[resource] || resource == podreference.ResourceClaims && len(pod.Spec.ResourceClaims) > 0 {
			return resource, true
		}
	}
	for i := range pod.Spec.Volumes {
		if what, known := apiObjectOfVolume(&pod.Spec.Volumes[i]); what != "" || !known {
			return what, known
		}
	}
	return "", true
}

// apiObjectOfVolume is apiObject for what package podreference does not list.
func apiObjectOfVolume(v *corev1.Volume) (what string, known bool) {
	switch {
	case v.ConfigMap != nil: // whose name is empty, as below
		return "configmaps (via configmap volumes)", true
	case v.Secret != nil:
		return "secrets (via secret volumes)", true
	case v.AzureFile != nil:
		return "secrets (via azureFile volumes)", true
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)", true
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)", true
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			switch s := &v.Projected.Sources[i]; {
			case s.ConfigMap != nil:
				return "configmaps (via projected volumes)", true
			case s.Secret != nil:
				return "secrets (via projected volumes)", true
			case s.ServiceAccountToken != nil:
				return "serviceaccounts (via projected volumes)", true
			case s.ClusterTrustBundle != nil:
				return "clustertrustbundles", true
			case s.PodCertificate != nil:
				return "podcertificates", true
			case s.DownwardAPI == nil:
				return v.Name, false
			}
		}
		return "", true
	}
	if slices.Contains([]bool{
		v.AWSElasticBlockStore != nil, v.AzureDisk != nil, v.CephFS != nil, v.Cinder != nil, v.DownwardAPI != nil, v.EmptyDir != nil,
		v.FC != nil, v.FlexVolume != nil, v.Flocker != nil, v.GCEPersistentDisk != nil, v.GitRepo != nil, v.HostPath != nil,
		v.Image != nil, v.ISCSI != nil, v.NFS != nil, v.PhotonPersistentDisk != nil, v.PortworxVolume != nil, v.Quobyte != nil,
		v.RBD != nil, v.ScaleIO != nil, v.StorageOS != nil, v.VsphereVolume != nil,
	}, true) {
		return "", true
	}
	return v.Name, false // a source that a later Kubernetes has
}
