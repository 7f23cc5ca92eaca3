package registry

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/registry/fieldmanager"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// scaleResource is what the scale of every kind looks like.
var scaleResource = &resource.Resource{
	Group: scaleKind.Group, Version: scaleKind.Version, Kind: scaleKind.Kind, Plural: "scale",
	New: func() resource.Object { return &autoscalingv1.Scale{} },
}

// replicasPath is where all built-in kinds have what a Scale shows.
var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// scaleOwners moves the ownership of the replicas between an object and its
// Scale, where they are another field.
type scaleOwners struct {
	Registry
	entries *managedfields.ScaleHandler
}

// scaleOwners gives scale the managers of the object's replicas.
func (r Registry) scaleOwners(obj resource.Object, scale *autoscalingv1.Scale) scaleOwners {
	paths := managedfields.ResourcePathMappings{}
	for _, res := range r.set.config.Resources.All() {
		if res.Stored().StorePrefix == r.stored.StorePrefix {
			paths[res.GroupVersion().String()] = replicasPathOf(res)
		}
	}
	o := scaleOwners{r, managedfields.NewScaleHandler(obj.GetManagedFields(), r.res.GroupVersion(), paths)}
	if managed, err := o.entries.ToSubresource(); err == nil {
		scale.SetManagedFields(managed)
	}
	return o
}

func replicasPathOf(res *resource.Resource) fieldpath.Path {
	if res.Scale == nil || len(res.Scale.ReplicasPath) == 0 {
		return replicasPath
	}
	path := make(fieldpath.Path, len(res.Scale.ReplicasPath))
	for i := range path {
		path[i] = fieldpath.PathElement{FieldName: &res.Scale.ReplicasPath[i]}
	}
	return path
}

func (o scaleOwners) manager() fieldmanager.Manager {
	return fieldmanager.Manager{Resource: scaleResource, Subresource: "scale", Now: o.set.Now().Time}
}

// giveTo makes the managers of the scale's replicas those of the object's. What
// cannot be worked out leaves them as they are.
func (o scaleOwners) giveTo(obj resource.Object, scale *autoscalingv1.Scale) {
	if managed, err := o.entries.ToParent(scale.GetManagedFields()); err == nil {
		obj.SetManagedFields(managed)
	}
}
