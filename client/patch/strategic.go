package patch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/levelwire/levelwire/internal/wirefield"
)

// The directives of strategic merge patches.
const (
	patchDirective        = "$patch"
	retainKeysDirective   = "$retainKeys"
	elementOrderPrefix    = "$setElementOrder/"
	deletePrimitivePrefix = "$deleteFromPrimitiveList/"
)

// strategy is how a field is merged, by the tags of its Go type.
type strategy struct {
	elem       reflect.Type // of the field, or of its elements; nil: unknown
	merge      bool         // a list is merged with the one that is there
	key        string       // of a list's elements; "": they are no objects
	retainKeys bool         // an object keeps only the members that are named
}

// strategyOf returns the strategy of the member called name of a Go type.
func strategyOf(t reflect.Type, name string) strategy {
	t = element(t)
	switch {
	case t == nil:
		return strategy{}
	case t.Kind() == reflect.Map:
		return strategy{elem: t.Elem()}
	case t.Kind() != reflect.Struct:
		return strategy{}
	}
	return strategiesOf(t)[name]
}

// knownStrategies are those of the struct types that were met: a
// map[string]strategy by reflect.Type. Programs have few such types.
var knownStrategies sync.Map

// strategiesOf returns the strategies of a struct's members by name.
func strategiesOf(t reflect.Type) map[string]strategy {
	if known, ok := knownStrategies.Load(t); ok {
		return known.(map[string]strategy)
	}
	all := map[string]strategy{}
	for _, member := range wirefield.Members(t) {
		tag := strings.Split(member.Go.Tag.Get("patchStrategy"), ",")
		all[member.Name] = strategy{
			elem: member.Go.Type, merge: slices.Contains(tag, "merge"), retainKeys: slices.Contains(tag, "retainKeys"),
			key: member.Go.Tag.Get("patchMergeKey"),
		}
	}
	knownStrategies.Store(t, all)
	return all
}

// element is what a type points to.
func element(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// strategicDifference returns the patch from before to after, whose Go type is t.
// A null and no member are the same.
func strategicDifference(before, after map[string]any, t reflect.Type) map[string]any {
	patch := map[string]any{}
	for name, old := range before {
		if old != nil && after[name] == nil {
			patch[name] = nil
		}
	}
	for name, value := range after {
		old := before[name]
		if value == nil || reflect.DeepEqual(old, value) {
			continue
		}
		how := strategyOf(t, name)
		switch value := value.(type) {
		case map[string]any:
			if old, ok := old.(map[string]any); ok {
				if inner := strategicDifference(old, value, how.elem); len(inner) > 0 {
					how.retain(inner, value)
					patch[name] = inner
				}
				continue
			}
		case []any:
			if old, ok := old.([]any); ok && how.merge {
				how.list(patch, name, old, value)
				continue
			}
		}
		patch[name] = value
	}
	return patch
}

// retain has the server drop the members that after does not have: of the fields
// of which only one may be set.
func (how strategy) retain(patch, after map[string]any) {
	if !how.retainKeys {
		return
	}
	names := make([]string, 0, len(after))
	for name, value := range after {
		if value != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	patch[retainKeysDirective] = names
}

// list adds to patch what turns the list before into after. Lists whose elements
// are not told apart by their keys, such as a port that is used for TCP and UDP,
// are replaced.
func (how strategy) list(patch map[string]any, name string, before, after []any) {
	old, oldOrder, unique := how.byKey(before)
	now, order, alsoUnique := how.byKey(after)
	if !unique || !alsoUnique {
		patch[name] = append([]any{map[string]any{patchDirective: "replace"}}, after...)
		return
	}
	var changes, deletions []any
	for _, id := range order {
		value, known := old[id]
		switch {
		case !known:
			changes = append(changes, now[id])
		case how.key != "" && !reflect.DeepEqual(value, now[id]):
			changes = append(changes, how.changed(value.(map[string]any), now[id].(map[string]any)))
		}
	}
	for _, id := range oldOrder {
		if _, kept := now[id]; !kept {
			deletions = append(deletions, how.identity(old[id]))
		}
	}
	if how.key == "" {
		if len(deletions) > 0 {
			patch[deletePrimitivePrefix+name] = deletions
		}
	} else {
		for _, deleted := range deletions {
			deleted.(map[string]any)[patchDirective] = "delete"
			changes = append(changes, deleted)
		}
	}
	if len(changes) > 0 {
		patch[name] = changes
	}
	names := make([]any, len(order))
	for n, id := range order {
		names[n] = how.identity(now[id])
	}
	patch[elementOrderPrefix+name] = names
}

// changed is the patch of one element.
func (how strategy) changed(before, after map[string]any) map[string]any {
	var t reflect.Type
	if list := element(how.elem); list != nil && list.Kind() == reflect.Slice {
		t = list.Elem()
	}
	inner := strategicDifference(before, after, t)
	how.retain(inner, after)
	inner[how.key] = after[how.key]
	return inner
}

// identity is what names an element: the object with its key alone, or the
// element itself.
func (how strategy) identity(value any) any {
	if how.key == "" {
		return value
	}
	return map[string]any{how.key: value.(map[string]any)[how.key]}
}

// byKey returns the elements by their keys, and the keys in order. unique is
// false if that is not possible.
func (how strategy) byKey(list []any) (byKey map[string]any, order []string, unique bool) {
	byKey = make(map[string]any, len(list))
	for _, value := range list {
		object, isObject := value.(map[string]any)
		if isObject != (how.key != "") {
			return nil, nil, false
		}
		named := value
		if isObject {
			if named = object[how.key]; named == nil {
				return nil, nil, false
			}
		}
		id := fmt.Sprintf("%T %v", named, named)
		if _, twice := byKey[id]; twice {
			if isObject {
				return nil, nil, false
			}
			continue // a list without keys is a set
		}
		byKey[id] = value
		order = append(order, id)
	}
	return byKey, order, true
}
