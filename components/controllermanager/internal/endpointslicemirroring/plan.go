package endpointslicemirroring

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// managedBy marks the slices that this controller may change.
const managedBy = "endpointslicemirroring-controller.k8s.io"

// plan is what has to be written so that the slices are as they should be.
type plan struct {
	create, update, remove []*discoveryv1.EndpointSlice
}

func (p *plan) empty() bool { return len(p.create)+len(p.update)+len(p.remove) == 0 }

// planFor compares the slices of an object with what they should hold. A group has one slice: one that already has
// its ports, or one of its family that no other group needs, or a new one.
func planFor(source *legacyEndpoints, wanted []group, existing []*discoveryv1.EndpointSlice) (p plan) {
	having := map[string][]*discoveryv1.EndpointSlice{}
	for _, slice := range slices.SortedFunc(slices.Values(existing), func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) }) {
		if slice.DeletionTimestamp == nil {
			id := groupID(slice.AddressType, slice.Ports)
			having[id] = append(having[id], slice)
		}
	}
	spare := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	var without []*group
	for i := range wanted {
		g := &wanted[i]
		of := having[g.id()]
		if len(of) == 0 {
			without = append(without, g)
			continue
		}
		p.updateTo(of[0], source, g)
		having[g.id()] = of[1:]
	}
	for _, id := range slices.Sorted(maps.Keys(having)) {
		for _, slice := range having[id] {
			spare[slice.AddressType] = append(spare[slice.AddressType], slice)
		}
	}
	for _, g := range without {
		if of := spare[g.family]; len(of) > 0 {
			p.updateTo(of[0], source, g)
			spare[g.family] = of[1:]
			continue
		}
		p.create = append(p.create, sliceOf(source, g))
	}
	for _, family := range slices.Sorted(maps.Keys(spare)) {
		p.remove = append(p.remove, spare[family]...)
	}
	return p
}

// updateTo adds the update of a slice to what it should be, unless it is that. A slice of an object that is gone, whose
// name another one has now, becomes the other's.
func (p *plan) updateTo(slice *discoveryv1.EndpointSlice, source *legacyEndpoints, g *group) {
	wanted := sliceOf(source, g)
	owned := metav1.IsControlledBy(slice, source)
	if owned && equality.Semantic.DeepEqual(slice.Endpoints, wanted.Endpoints) && groupID(slice.AddressType, slice.Ports) == g.id() &&
		labels.Equals(slice.Labels, wanted.Labels) && labels.Equals(slice.Annotations, wanted.Annotations) {
		return
	}
	update := slice.DeepCopy()
	update.Labels, update.Annotations = wanted.Labels, wanted.Annotations
	update.Ports, update.Endpoints = wanted.Ports, wanted.Endpoints
	if !owned {
		update.OwnerReferences = wanted.OwnerReferences
	}
	p.update = append(p.update, update)
}

// sliceOf returns a new slice of a group, with what the object has of labels and annotations. The annotations that say
// when a Service has changed, and with what kubectl has applied the object, are not true of the slice.
func sliceOf(source *legacyEndpoints, g *group) *discoveryv1.EndpointSlice {
	copied := maps.Clone(source.Labels)
	if copied == nil {
		copied = map[string]string{}
	}
	copied[discoveryv1.LabelServiceName] = source.Name
	copied[discoveryv1.LabelManagedBy] = managedBy
	annotations := maps.Clone(source.Annotations)
	delete(annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: source.Namespace, GenerateName: source.Name + "-", Labels: copied, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(source, corev1.SchemeGroupVersion.WithKind("Endpoints"))},
		},
		AddressType: g.family, Ports: g.ports, Endpoints: g.endpoints,
	}
}
