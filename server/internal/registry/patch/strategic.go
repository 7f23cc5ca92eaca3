package patch

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// The directives of a strategic merge that name a list, before the list's own name.
const (
	setElementOrder         = "$setElementOrder/"
	deleteFromPrimitiveList = "$deleteFromPrimitiveList/"
)

// applyStrategic is strategicpatch.StrategicMergePatch for merges of bounded cost.
func (p *Patch) applyStrategic(doc []byte, like any) ([]byte, error) {
	meta, err := strategicpatch.NewPatchMetaFromStruct(like)
	if err != nil {
		return nil, err
	}
	var live, body map[string]any
	if json.Unmarshal(doc, &live) != nil || json.Unmarshal(p.body, &body) != nil {
		return nil, mergepatch.ErrBadJSONDoc
	}
	if n := comparisons(live, []map[string]any{body}, meta); n > maxComparisons {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"a strategic merge that compares elements of lists about %d times, the limit is %d: send fewer elements, a JSON patch, or the whole object", n, maxComparisons))
	}
	p.left = body
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(live, body, meta)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merged)
}

// comparisons is about how often the library compares two elements of lists when it merges
// patches, one after the other, into an object: to find an element, and to sort a list, it
// goes through the list from its start for each element. Of what does not merge, or ends in
// an error, it may be too many.
func comparisons(live map[string]any, patches []map[string]any, meta strategicpatch.LookupPatchMeta) (n int) {
	for name, changes := range changesOf(patches) {
		if len(changes.objects) > 0 {
			if of, _, err := meta.LookupPatchMetadataForStruct(name); err == nil {
				below, _ := live[name].(map[string]any)
				n += comparisons(below, changes.objects, of)
			}
		}
		if len(changes.lists) > 0 {
			n += changes.comparisonsWith(live[name], name, meta)
		}
	}
	return n
}

// fieldChanges is what patches say of one field.
type fieldChanges struct {
	objects []map[string]any
	lists   [][]any
	ordered int // elements of the lists that say the order
	orders  bool
	deletes bool
}

// changesOf returns what patches say, by field.
func changesOf(patches []map[string]any) map[string]*fieldChanges {
	fields := map[string]*fieldChanges{}
	for _, patch := range patches {
		for key, value := range patch {
			name, orders := strings.CutPrefix(key, setElementOrder)
			name, deletes := strings.CutPrefix(name, deleteFromPrimitiveList)
			field := fields[name]
			if field == nil {
				field = &fieldChanges{}
				fields[name] = field
			}
			field.orders, field.deletes = field.orders || orders, field.deletes || deletes
			switch v := value.(type) {
			case map[string]any:
				field.objects = append(field.objects, v)
			case []any:
				if orders { // also sorts a list that the patch does not name
					field.ordered += len(v)
					v = nil
				}
				field.lists = append(field.lists, v)
			}
		}
	}
	return fields
}

// comparisonsWith is comparisons for one list. An element that is in it twice is merged twice,
// and so are the lists that it has.
func (f *fieldChanges) comparisonsWith(live any, name string, meta strategicpatch.LookupPatchMeta) (n int) {
	of, how, err := meta.LookupPatchMetadataForSlice(name)
	if err != nil || !f.orders && !f.deletes && !slices.Contains(how.GetPatchStrategies(), "merge") {
		return 0
	}
	list, merges := live.([]any)
	length := len(list) + f.ordered
	for _, elements := range f.lists {
		length += len(elements)
		if merges || f.orders {
			n += length * length
		}
		merges = true // the first takes the place of a list that is not there
	}
	key := how.GetPatchMergeKey()
	byKey := elementsByKey(list, key)
	for value, patches := range patchesByKey(f.lists, key) {
		n += comparisons(byKey[value], patches, of)
	}
	return n
}

// elementsByKey returns the elements of a list by the values of their merge key, of several
// with the same value the first, as the library finds them.
func elementsByKey(list []any, key string) map[any]map[string]any {
	found := make(map[any]map[string]any, len(list))
	for _, element := range list {
		if object, ok := element.(map[string]any); ok && isScalar(object[key]) && found[object[key]] == nil {
			found[object[key]] = object
		}
	}
	return found
}

// patchesByKey returns the patches of elements by the values of the merge key.
func patchesByKey(lists [][]any, key string) map[any][]map[string]any {
	patches := map[any][]map[string]any{}
	for _, list := range lists {
		for _, element := range list {
			if object, ok := element.(map[string]any); ok && isScalar(object[key]) {
				patches[object[key]] = append(patches[object[key]], object)
			}
		}
	}
	return patches
}

// isScalar reports whether a value may be a merge key: the library fails on others.
func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
