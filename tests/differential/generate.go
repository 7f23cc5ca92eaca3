package differential

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// object is a valid object of a kind, from which requests are made.
type object struct {
	kind  *kind
	base  string // its name among those of its kind
	value map[string]any
}

// singles returns every request in which one field of an object has an odd value.
func singles(verb string, o *object) []*request {
	if verb == deleteOne || verb == deleteCollection {
		return deletions(verb, o)
	}
	var list []*request
	visitFields(o.kind, skipFor(verb), o.kind.schema, o.value, nil, func(at path, s *schema, current any) {
		for _, value := range oddValues(s, current) {
			list = append(list, &request{verb, o.kind, o.base, []edit{{at, value}}})
		}
	})
	return list
}

// skipFor returns what is left out of the fields that a verb sets.
func skipFor(verb string) func(*kind, path) bool {
	if verb == updateStatus {
		return func(_ *kind, at path) bool { return at[0] != "status" }
	}
	return skipped
}

// readKinds are the kinds with which every option of a read is tried: its rules are the same for every
// kind of a scope, and for those whose fields can be selected.
var readKinds = []string{"v1 ConfigMap", "v1 Node", "v1 Pod", "apps/v1 Deployment", "apiextensions.k8s.io/v1 CustomResourceDefinition"}

// A FlowSchema is left out of sequences: kube-apiserver writes into it now or in a minute.

// applies reports whether an object can be asked about with a verb. Nothing in the objects of more is
// read or deleted otherwise.
func applies(verb string, o *object) bool {
	if strings.HasPrefix(o.base, more) && (isSequence(verb) || verb == deleteOne || verb == deleteCollection) {
		return false
	}
	if isSequence(verb) {
		return playable(o.kind) && o.kind.Kind != "FlowSchema" && plays(verb, o)
	}
	if verb == readBack && !readsBack(o) {
		return false
	}
	return slices.Contains(o.kind.verbs, verbInDiscovery(verb)) && (verb == updateStatus) == (o.base == withStatus)
}

// plays reports whether a sequence is about an object of a kind.
func plays(verb string, o *object) bool {
	switch verb {
	case statuses: // into those of settled kinds the servers write, each at its own time
		return o.base == withStatus && settled[o.kind.Kind] == nil
	case reads:
		return o.base == small && slices.Contains(readKinds, o.kind.String())
	case selections: // a server's own writes are events, too
		return o.base == small && settled[o.kind.Kind] == nil
	case pages:
		return o.base == small && o.kind.Kind == "ConfigMap"
	case resizes, limits:
		return o.base == small && o.kind.Kind == "Pod"
	default:
		return o.base != withStatus
	}
}

// everyMetadata are the kinds with which each field of the metadata is tried: most of its rules are
// the same for every kind of a scope. ownMetadata are the fields of which kinds have rules of their own.
var (
	everyMetadata = []string{"v1 ConfigMap", "v1 Namespace", "apps/v1 Deployment"}
	ownMetadata   = []string{"name", "generateName", "finalizers"}
)

// skipped reports whether a field is left out: the status of most kinds is not the
// client's to set, and most metadata is tried with some kinds only.
func skipped(k *kind, at path) bool {
	switch {
	case at[0] == "status":
		return true
	case at[0] != "metadata" || len(at) == 1:
		return false
	case slices.Contains(everyMetadata, k.String()):
		return at[1] == "managedFields" && len(at) > 2
	default:
		name, _ := at[1].(string)
		return !slices.Contains(ownMetadata, name)
	}
}

// visitFields calls visit for each field of an object and of what stands in it, whether the
// object has it or not, but for what is skipped: depth first, in the order of names. Fields of what is not there are
// not visited.
func visitFields(k *kind, skip func(*kind, path) bool, s *schema, value any, at path, visit func(at path, s *schema, current any)) {
	switch s.kind {
	case objectValue:
		members, _ := value.(map[string]any)
		for _, name := range s.fieldNames {
			field := at.child(name)
			if skip(k, field) {
				continue
			}
			visit(field, s.fields[name], members[name])
			if members[name] != nil {
				visitFields(k, skip, s.fields[name], members[name], field, visit)
			}
		}
	case arrayValue:
		list, _ := value.([]any)
		for i, item := range list {
			if s.items.kind != objectValue {
				visit(at.child(i), s.items, item)
			}
			visitFields(k, skip, s.items, item, at.child(i), visit)
		}
	case mapValue:
		members, _ := value.(map[string]any)
		for _, key := range sortedKeys(members) {
			visit(at.child(key), s.values, members[key])
			visitFields(k, skip, s.values, members[key], at.child(key), visit)
		}
	}
}

func sortedKeys(members map[string]any) []string { return slices.Sorted(maps.Keys(members)) }

// generate returns requests in an order that the seed decides. n <= 0 means every request with a
// single field. Of n, a tenth are about fieldValidation, a fifth set two fields, or more if there are
// not as many with a single one. Sequences have no fields: all of them come last, beside the n.
func generate(objects []*object, verbs []string, seed uint64, n int) []*request {
	random := rand.New(rand.NewPCG(seed, 0))
	byObject := map[*object][]*request{}
	var all, whole []*request
	for _, verb := range verbs {
		for _, o := range objects {
			if !applies(verb, o) {
				continue
			}
			if isSequence(verb) {
				whole = append(whole, &request{verb: verb, kind: o.kind, base: o.base})
				continue
			}
			list := singles(verb, o)
			if verb == readBack {
				random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				list = list[:len(list)/oneReadBackOf]
			}
			byObject[o] = append(byObject[o], list...)
			all = append(all, &request{verb: verb, kind: o.kind, base: o.base})
			all = append(all, list...)
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if n > 0 {
		ofTwo, ofLevels := n/5, fieldValidations(objects, verbs, seed, max(n/10, 1))
		all = append(all[:min(len(all), n-ofTwo-len(ofLevels))], ofLevels...)
		all = append(all, pairs(objects, byObject, random, n-len(all))...)
	}
	return append(versioned(all), whole...)
}

// pairs returns n requests with two fields each, none twice.
func pairs(objects []*object, singles map[*object][]*request, random *rand.Rand, n int) []*request {
	var list []*request
	seen := map[string]bool{}
	for _, of := range singles {
		for _, r := range of {
			if r.deletes() { // two of whose options may be those of a third
				seen[r.String()] = true
			}
		}
	}
	for tries := 0; len(list) < n && tries < 10*n; tries++ {
		of := singles[objects[random.IntN(len(objects))]]
		if len(of) == 0 {
			continue
		}
		first, second := of[random.IntN(len(of))], of[random.IntN(len(of))]
		if first.verb != second.verb {
			continue
		}
		edits := bothEdits(first, second)
		if edits == nil {
			continue
		}
		r := &request{first.verb, first.kind, first.base, edits}
		if name := r.String(); !seen[name] {
			seen[name] = true
			list = append(list, r)
		}
	}
	return list
}

// bothEdits returns the edits of two requests in an order of their own, or nil if they cannot be made
// together.
func bothEdits(first, second *request) []edit {
	if first.deletes() {
		return bothOptions(first.edits, second.edits)
	}
	if related(first.edits[0].at, second.edits[0].at) {
		return nil
	}
	edits := []edit{first.edits[0], second.edits[0]}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.String(), b.String()) })
	return edits
}

// related reports whether one of two paths leads through the other, so that the second edit
// would undo the first or fail.
func related(a, b path) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}
