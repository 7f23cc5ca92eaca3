package scale

import (
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/fieldmanager"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// scaleResource describes the scale of every kind.
var scaleResource = &resource.Resource{
	Group: Kind.Group, Version: Kind.Version, Kind: Kind.Kind, Plural: "scale",
	New: func() resource.Object { return &autoscalingv1.Scale{} },
}

// replicasPath is the path of the wanted replicas in all built-in kinds.
var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// owners moves the ownership of the replicas between an object and its
// Scale, where they are another field.
type owners struct {
	now     time.Time
	entries *managedfields.ScaleHandler
}

// ownersOf gives scale the managers of the object's replicas.
func ownersOf(r registry.Registry, obj resource.Object, scale *autoscalingv1.Scale) owners {
	paths := managedfields.ResourcePathMappings{}
	for _, res := range r.Set().Resources().All() {
		if res.Stored().StorePrefix == r.Resource().Stored().StorePrefix {
			paths[res.GroupVersion().String()] = replicasPathOf(res)
		}
	}
	o := owners{r.Set().Now().Time, managedfields.NewScaleHandler(obj.GetManagedFields(), r.Resource().GroupVersion(), paths)}
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

func (o owners) manager() fieldmanager.Manager {
	return fieldmanager.Manager{Resource: scaleResource, Subresource: "scale", Now: o.now}
}

// giveTo makes the managers of the scale's replicas those of the object's. If they
// cannot be worked out it leaves the object's as they are.
func (o owners) giveTo(obj resource.Object, scale *autoscalingv1.Scale) {
	if managed, err := o.entries.ToParent(scale.GetManagedFields()); err == nil {
		obj.SetManagedFields(managed)
	}
}
