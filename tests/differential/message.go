package differential

import (
	"net/http"
	"strings"
)

// message is what is sent of a request, whatever the server.
type message struct {
	method, contentType string
	query               string // beside the dry run; of a delete, all of it
	body                any
}

const (
	asMergePatch     = "application/merge-patch+json"
	asStrategicPatch = "application/strategic-merge-patch+json"
	asJSONPatch      = "application/json-patch+json"
	asApplyPatch     = "application/apply-patch+yaml"
)

// message returns what is sent for an object that stands on the server, or is to. A patch
// says what its edits change.
func (r *request) message(base map[string]any) (message, error) {
	if r.deletes() {
		return r.deleteMessage(base)
	}
	edited, err := r.body(base)
	if err != nil {
		return message{}, err
	}
	query, err := queryOf(r.edits)
	if err != nil {
		return message{}, err
	}
	switch r.verb {
	case create, readBack:
		return message{http.MethodPost, asJSON, query, edited}, nil
	case update, updateStatus:
		return message{http.MethodPut, asJSON, query, edited}, nil
	case mergePatch:
		return message{http.MethodPatch, asMergePatch, query, mergeOf(base, edited)}, nil
	case strategicPatch:
		return message{http.MethodPatch, asStrategicPatch, query, mergeOf(base, edited)}, nil
	case jsonPatch:
		return message{http.MethodPatch, asJSONPatch, query, operationsOf(r.edits, base, edited)}, nil
	default:
		return message{http.MethodPatch, asApplyPatch, query + "&force=true&fieldManager=" + userAgent, edited}, nil
	}
}

// mergeOf returns the merge patch (RFC 7386) that makes edited of base.
func mergeOf(base, edited map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range base {
		if _, ok := edited[name]; !ok {
			patch[name] = nil
		}
	}
	for name, value := range edited {
		before, had := base[name]
		if had && literal(before) == literal(value) {
			continue
		}
		members, isObject := value.(map[string]any)
		if was, wasObject := before.(map[string]any); isObject && wasObject {
			value = mergeOf(was, members)
		}
		patch[name] = value
		if first, isSecond := strings.CutSuffix(name, secondOne); isSecond {
			patch[first] = edited[first]
		}
	}
	return patch
}

// operationsOf returns the JSON patch (RFC 6902) that makes the edits.
func operationsOf(edits []edit, base, edited map[string]any) []map[string]any {
	operations := []map[string]any{} // a patch without any is an empty list
	for _, e := range edits {
		if e.at[0] == inQuery {
			continue
		}
		at := e.at
		if e.value == doubled {
			at = at[:len(at)-1] // the object in which it stands twice
		}
		_, had := get(base, at)
		value, has := get(edited, at)
		operation := map[string]any{"path": at.pointer()}
		switch {
		case !has:
			operation["op"] = "remove"
		case had:
			operation["op"], operation["value"] = "replace", value
		default:
			operation["op"], operation["value"] = "add", value
		}
		operations = append(operations, operation)
	}
	return operations
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")
