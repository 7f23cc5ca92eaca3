package podrules

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// nodeSelectorAnnotation is what a namespace says about the nodes of its pods, as
// "disk=ssd,zone=a".
const nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"

// clusterDefault is the name of the list for namespaces without the annotation.
const clusterDefault = "clusterDefaultNodeSelector"

// ParseNodeSelectors reads the configuration of PodNodeSelector: by the name of a namespace
// the labels of nodes that its pods may select, and what clusterDefaultNodeSelector has pods
// select in namespaces without the annotation
// (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podnodeselector).
func ParseNodeSelectors(data []byte) (map[string]labels.Set, error) {
	var read struct {
		Config map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	if err := yaml.UnmarshalStrict(data, &read); err != nil {
		return nil, err
	}
	if read.Config == nil {
		return nil, errors.New("it has no podNodeSelectorPluginConfig, which names node selectors by namespace")
	}
	selectors := map[string]labels.Set{}
	for name, text := range read.Config {
		set, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			return nil, fmt.Errorf("podNodeSelectorPluginConfig: %s: %w", name, err)
		}
		selectors[name] = set
	}
	return selectors, nil
}

// NodeSelectors limits the pods of a namespace to the nodes that its annotation names, and
// to the labels that the configuration of the cluster has for the namespace.
type NodeSelectors struct {
	set     *registry.Set
	cluster map[string]labels.Set
}

// NewNodeSelectors returns the plugin for the namespaces of a set. cluster is what
// ParseNodeSelectors returns; it may be nil.
func NewNodeSelectors(set *registry.Set, cluster map[string]labels.Set) NodeSelectors {
	return NodeSelectors{set, cluster}
}

// Validate refuses new pods that select nodes by labels which the configuration does not
// have for their namespace.
func (n NodeSelectors) Validate(_ context.Context, q *registry.Request) error {
	pod := newPod(q)
	if pod == nil || len(n.cluster[q.Namespace]) == 0 {
		return nil
	}
	allowed := n.cluster[q.Namespace]
	for key, value := range pod.Spec.NodeSelector {
		if got, ok := allowed[key]; !ok || got != value {
			return q.Forbidden(errors.New("pod node label selector labels conflict with its namespace whitelist"))
		}
	}
	return nil
}

// Mutate adds the node selector of the namespace, or that of the cluster, to a new pod's.
func (n NodeSelectors) Mutate(ctx context.Context, q *registry.Request) error {
	pod := newPod(q)
	if pod == nil {
		return nil
	}
	namespaces, ok := n.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	namespace, err := registry.GetAs[*corev1.Namespace](ctx, namespaces, "", q.Namespace)
	if err != nil {
		return err
	}
	wanted := n.cluster[clusterDefault]
	if text, ok := namespace.Annotations[nodeSelectorAnnotation]; ok {
		if wanted, err = labels.ConvertSelectorToLabelsMap(text); err != nil {
			return q.Forbidden(fmt.Errorf("the annotation %s of namespace %s must be labels and their values (a=b,c=d): %w", nodeSelectorAnnotation, q.Namespace, err))
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if labels.Conflicts(wanted, labels.Set(pod.Spec.NodeSelector)) {
		return q.Forbidden(errors.New("pod node label selector conflicts with its namespace node label selector"))
	}
	pod.Spec.NodeSelector = labels.Merge(wanted, pod.Spec.NodeSelector)
	return nil
}
