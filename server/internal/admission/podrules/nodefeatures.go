package podrules

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/levelwire/levelwire/internal/quota"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// NodeFeatures refuses changes of pods that their nodes cannot follow: a resize that has no room on the node
// (the plugin PodResizeValidator, KEP-1287), or what the node does not say that it can do
// (NodeDeclaredFeatureValidator, KEP-5328).
type NodeFeatures struct{ set *registry.Set }

// NewNodeFeatures returns the plugins for the nodes of a set.
func NewNodeFeatures(set *registry.Set) NodeFeatures { return NodeFeatures{set} }

// What is the cause of a refused resize.
const (
	noCapacity          = "NodeCapacity"
	unsupportedPlatform = "UnsupportedPlatform"
)

// ValidateResize refuses a resize of a bound pod whose node is not Linux, or has less cpu or memory than the pod
// would request. What other pods request is for the node's kubelet to decide.
func (f NodeFeatures) ValidateResize(ctx context.Context, q *registry.Request) error {
	pod, _ := changedPod(q)
	if pod == nil || q.Subresource != "resize" {
		return nil
	}
	node, err := f.nodeOf(ctx, q, pod)
	if err != nil {
		return err
	}
	if os, ok := node.Labels[corev1.LabelOSStable]; ok && os != string(corev1.Linux) {
		return because(unsupportedPlatform, q.Forbidden(fmt.Errorf("pod resize is only supported on linux nodes, node %q is %q", node.Name, os)))
	}
	requests := quota.PodRequests(pod)
	var short []string
	if wanted, has := requests.Cpu(), node.Status.Allocatable.Cpu(); wanted.Cmp(*has) > 0 {
		short = append(short, fmt.Sprintf("cpu, requested: %d, allocatable: %d", wanted.MilliValue(), has.MilliValue()))
	}
	if wanted, has := requests.Memory(), node.Status.Allocatable.Memory(); wanted.Cmp(*has) > 0 {
		short = append(short, fmt.Sprintf("memory, requested: %d, allocatable: %d", wanted.Value(), has.Value()))
	}
	if len(short) > 0 {
		return because(noCapacity, q.Forbidden(fmt.Errorf("node didn't have enough allocatable resources: %s", strings.Join(short, "; "))))
	}
	return nil
}

// because returns a refusal with a cause, by which programs know it.
func because(cause metav1.CauseType, refusal *apierrors.StatusError) error {
	details := refusal.ErrStatus.Details
	details.Causes = append(details.Causes, metav1.StatusCause{Type: cause})
	return refusal
}

// anyVersion stands for that of the cluster, which counts only for features that every later node has. There is
// none yet.
var anyVersion = version.MajorMinor(1, 37)

// ValidateFeatures refuses a change of a bound pod that takes a feature which the node does not declare in its status.
func (f NodeFeatures) ValidateFeatures(ctx context.Context, q *registry.Request) error {
	pod, old := changedPod(q)
	if pod == nil || q.Subresource != "" && q.Subresource != "resize" {
		return nil
	}
	features := nodedeclaredfeatures.DefaultFramework
	needed, err := features.InferForPodUpdate(podInfo(old), podInfo(pod), anyVersion)
	if err != nil {
		return q.Forbidden(fmt.Errorf("failed to infer pod capability requirements: %w", err))
	}
	if needed.IsEmpty() {
		return nil
	}
	node, err := f.nodeOf(ctx, q, pod)
	if err != nil {
		return err
	}
	match, err := features.MatchNode(needed, node)
	if err != nil {
		return q.Forbidden(fmt.Errorf("failed to match pod requirements against node %q: %w", node.Name, err))
	}
	if !match.IsMatch {
		return q.Forbidden(fmt.Errorf("pod update requires features %s which are not available on node %q", strings.Join(match.UnsatisfiedRequirements, ", "), node.Name))
	}
	return nil
}

func podInfo(pod *corev1.Pod) *nodedeclaredfeatures.PodInfo {
	return &nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}
}

// changedPod returns a pod that has a node and of which something is changed that a kubelet follows, and the pod
// before; nil for every other request.
func changedPod(q *registry.Request) (pod, old *corev1.Pod) {
	if q.Operation != registry.Update || q.Resource.GroupResource() != podsResource {
		return nil, nil
	}
	pod, _ = q.Object.(*corev1.Pod)
	old, _ = q.Old.(*corev1.Pod)
	if pod == nil || old == nil || pod.Spec.NodeName == "" || pod.Generation == old.Generation {
		return nil, nil
	}
	return pod, old
}

func (f NodeFeatures) nodeOf(ctx context.Context, q *registry.Request, pod *corev1.Pod) (*corev1.Node, error) {
	name := pod.Spec.NodeName
	nodes, ok := f.set.Lookup("", "v1", "nodes")
	if !ok {
		return nil, q.Forbidden(fmt.Errorf("node %q not found", name))
	}
	node, err := registry.GetAs[*corev1.Node](ctx, nodes, "", name)
	if apierrors.IsNotFound(err) {
		return nil, q.Forbidden(fmt.Errorf("node %q not found", name))
	}
	return node, err
}
