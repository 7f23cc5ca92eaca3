package resource

// Metadata is a set of members of an object's metadata.
type Metadata uint8

// The members that clients set, and that some kinds keep from writers of their status.
const (
	MetadataLabels Metadata = 1 << iota
	MetadataAnnotations
	MetadataFinalizers
	MetadataOwnerReferences

	AllMetadata = MetadataLabels | MetadataAnnotations | MetadataFinalizers | MetadataOwnerReferences
)

// metadataMembers has the members by the names that they have in JSON.
var metadataMembers = []struct {
	member Metadata
	name   string
	take   func(obj, from Object)
}{
	{MetadataLabels, "labels", func(obj, from Object) { obj.SetLabels(from.GetLabels()) }},
	{MetadataAnnotations, "annotations", func(obj, from Object) { obj.SetAnnotations(from.GetAnnotations()) }},
	{MetadataFinalizers, "finalizers", func(obj, from Object) { obj.SetFinalizers(from.GetFinalizers()) }},
	{MetadataOwnerReferences, "ownerReferences", func(obj, from Object) { obj.SetOwnerReferences(from.GetOwnerReferences()) }},
}

// Take gives obj the members of the set from another object. The two share memory then.
func (m Metadata) Take(obj, from Object) {
	for _, known := range metadataMembers {
		if m&known.member != 0 {
			known.take(obj, from)
		}
	}
}

// Names returns the names of the members in JSON.
func (m Metadata) Names() []string {
	var names []string
	for _, known := range metadataMembers {
		if m&known.member != 0 {
			names = append(names, known.name)
		}
	}
	return names
}
