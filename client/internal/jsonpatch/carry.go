package jsonpatch

import "reflect"

// CarryOver returns document with the changes that lead from before to after,
// which are what a Go type makes of the document: it may lack fields that the
// type does not know, and have empty ones that the document does not. Both stay
// as the document has them. The arguments are not changed, but the result
// shares parts with them.
func CarryOver(document, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return document
	}
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			if document, ok := document.(map[string]any); ok || document == nil {
				return carryObject(document, before, after)
			}
		}
	case []any:
		before, wasArray := before.([]any)
		document, isArray := document.([]any)
		if wasArray && isArray && len(before) == len(document) {
			return carryArray(document, before, after)
		}
	}
	return after
}

func carryObject(document, before, after map[string]any) map[string]any {
	out := make(map[string]any, len(document))
	for name, value := range document {
		if _, was := before[name]; was {
			if _, is := after[name]; !is {
				continue // the change removes it
			}
		}
		out[name] = value
	}
	for name, value := range after {
		was, known := before[name]
		if known && reflect.DeepEqual(was, value) {
			continue
		}
		if known {
			if _, isObject := value.(map[string]any); isObject && document[name] == nil {
				out[name] = CarryOver(map[string]any(nil), was, value)
				continue
			}
			out[name] = CarryOver(document[name], was, value)
			continue
		}
		out[name] = value
	}
	return out
}

// carryArray takes each element of after from the document if it was there
// before, as it is or by its name, so that it keeps what the type does not know.
func carryArray(document, before, after []any) []any {
	out := make([]any, len(after))
	used := make([]bool, len(before))
	for n, value := range after {
		out[n] = value
		if m := find(before, used, n, len(before) == len(after), value); m >= 0 {
			used[m] = true
			out[n] = CarryOver(document[m], before[m], value)
		}
	}
	return out
}

// find returns where the element that became value was before: an equal one, one
// of the same name, or, if the length has not changed and it has no name, the
// one at the same place. -1: it is new.
func find(before []any, used []bool, at int, sameLength bool, value any) int {
	if at < len(before) && !used[at] && reflect.DeepEqual(before[at], value) {
		return at
	}
	name, named := nameOf(value)
	for m, was := range before {
		if used[m] {
			continue
		}
		if named {
			if other, ok := nameOf(was); ok && other == name {
				return m
			}
		} else if reflect.DeepEqual(was, value) {
			return m
		}
	}
	if !named && sameLength && !used[at] {
		return at
	}
	return -1
}

func nameOf(element any) (string, bool) {
	object, ok := element.(map[string]any)
	if !ok {
		return "", false
	}
	name, ok := object["name"].(string)
	return name, ok
}
