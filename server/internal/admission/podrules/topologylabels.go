package podrules

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// TopologyLabels gives pods the zone and the region of the node to which they are bound,
// so that containers can read them by the downward API (KEP-4742).
type TopologyLabels struct{ set *registry.Set }

// NewTopologyLabels returns the plugin for the nodes of a set.
func NewTopologyLabels(set *registry.Set) TopologyLabels { return TopologyLabels{set} }

// Mutate sets the labels in a Binding, from which the pod gets them, and in a pod that is
// created with a node. The node's values replace those of a client.
func (t TopologyLabels) Mutate(ctx context.Context, q *registry.Request) error {
	if q.Operation != registry.Create || q.Resource.GroupResource() != podsResource {
		return nil
	}
	node := ""
	switch obj := q.Object.(type) {
	case *corev1.Binding:
		if q.Subresource == "binding" && obj.Target.Kind == "Node" { // without a kind it is one, too, but kube-apiserver leaves that pod as it is
			node = obj.Target.Name
		}
	case *corev1.Pod:
		if q.Subresource == "" {
			node = obj.Spec.NodeName
		}
	}
	if node == "" {
		return nil
	}
	return t.label(ctx, q, node)
}

// label sets the labels in the request's object. A node that does not exist has none.
func (t TopologyLabels) label(ctx context.Context, q *registry.Request, node string) error {
	nodes, ok := t.set.Lookup("", "v1", "nodes")
	if !ok {
		return nil
	}
	snapshot, err := nodes.Snapshot(ctx)
	if err != nil {
		return err
	}
	cached, ok := snapshot.Get(nodes.Resource().Stored().Key("", node))
	if !ok {
		return nil
	}
	labels := q.Object.GetLabels()
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		value, ok := cached.Attributes.Labels.Lookup(key)
		if !ok {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	q.Object.SetLabels(labels)
	return nil
}
