package differential

import "slices"

// repeated says of which kinds an event is left out that shows an object as the event before it did,
// because a server has written it again.
type repeated struct {
	name    string
	kinds   []string
	without []path // what may differ
}

var repeatedEvents = []repeated{
	// By a PUT that changes nothing, which kube-apiserver stores with another time in managedFields.
	{name: "the same object, written again", kinds: []string{"PersistentVolumeClaim", "Job"}},
	// By a controller of the server, at its own time and in its own number of steps.
	{
		name: "a status of the server's own", kinds: []string{"CustomResourceDefinition", "ValidatingAdmissionPolicy"},
		without: []path{{"status"}, {"metadata", "managedFields"}},
	},
}

// withoutRepeated returns the normalised events of a watch without those that only repeat the one
// before. Each write has a version: an event of the same version again, as in raw, stays.
func (n *normaliser) withoutRepeated(events, raw []any) []any {
	list := []any{}
	for i := range events {
		if i == 0 || !slices.ContainsFunc(repeatedEvents, func(r repeated) bool {
			return matchesKind(r.kinds, n.kind.String()) && r.repeats(events[i-1], events[i]) && versionOfEvent(raw[i-1]) != versionOfEvent(raw[i])
		}) {
			list = append(list, events[i])
		}
	}
	return list
}

func (r *repeated) repeats(before, event any) bool {
	kind, _ := get(event, path{"type"})
	return kind == "MODIFIED" && r.shown(before) == r.shown(event)
}

// shown is the object of an event, as far as it is compared.
func (r *repeated) shown(event any) string {
	object, _ := get(event, path{"object"})
	for _, at := range append(r.without, versionPath) {
		if _, ok := get(object, at); ok {
			// What was found can be removed.
			object, _, _ = replaceAt(object, at, func(any) (any, bool) { return nil, false })
		}
	}
	return literal(object)
}

func versionOfEvent(event any) string {
	version, _ := get(event, append(path{"object"}, versionPath...))
	return literal(version)
}
