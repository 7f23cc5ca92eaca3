package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The edits of a delete are of its query and its body, in place of an object:
//
//	delete v1 Pod small query.gracePeriodSeconds="0"
//	delete v1 Pod small body={"dryRun":["All"]} body.preconditions.uid=stored
//
// A body that is a string is sent as it is. Kube-apiserver ignores the query of a DELETE with a
// body, so that a body has a dry run of its own.
const (
	deleteOne        = "delete"
	deleteCollection = "deletecollection" // of the one object
)

const (
	inQuery = "query"
	inBody  = "body"
	allRuns = `{"dryRun":["All"]}`
)

func (r *request) deletes() bool { return r.verb == deleteOne || r.verb == deleteCollection }

// deletion is what the edits of a request are about: a dry run without options.
func (r *request) deletion(base map[string]any) map[string]any {
	query := map[string]any{"dryRun": "All"}
	if r.verb == deleteCollection {
		query["fieldSelector"] = "metadata.name=" + nameOf(base)
	}
	return map[string]any{inQuery: query}
}

// real reports whether a request may write: whether a server that takes it does. Of a delete, its body or
// query may ask for a dry run.
func (r *request) real() bool {
	if !r.deletes() {
		return r.verb == readBack
	}
	options, err := r.body(nil)
	if err != nil {
		return false
	}
	place, ok := options[inBody].(map[string]any)
	if _, has := options[inBody]; !has {
		place, ok = options[inQuery].(map[string]any)
	}
	if !ok {
		return true // whether the body is one at all is what is asked
	}
	switch runs := place["dryRun"].(type) {
	case string:
		return runs != "All"
	case []any:
		return !slices.Contains(runs, any("All"))
	}
	return true
}

// rawBody is sent as it is.
type rawBody string

// deleteMessage returns what is sent of a delete.
func (r *request) deleteMessage(base map[string]any) (message, error) {
	options, err := r.body(base)
	if err != nil {
		return message{}, err
	}
	query := url.Values{}
	members, _ := options[inQuery].(map[string]any)
	for name, value := range members {
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		for _, item := range list {
			query.Add(name, fmt.Sprint(item))
		}
	}
	m := message{method: http.MethodDelete, contentType: asJSON, query: query.Encode(), body: options[inBody]}
	if text, ok := m.body.(string); ok {
		m.body = rawBody(text)
	}
	return m, nil
}

// deleteOptions are the options and what they are set to, as a member of a body.
var deleteOptions = []struct {
	name   string
	values []string
}{
	{"gracePeriodSeconds", []string{`0`, `1`, `30`, `-1`, `-2`, `86400`, `9223372036854775807`, `9223372036854775808`, `"1"`, `1.5`, `null`}},
	{"propagationPolicy", []string{`"Orphan"`, `"Background"`, `"Foreground"`, `"Invented"`, `""`, `1`, `null`}},
	{"orphanDependents", []string{`true`, `false`, `"true"`, `null`}},
	{"dryRun", []string{`["All"]`, `["All","All"]`, `["Invented"]`, `["All","Invented"]`, `[]`, `[""]`, `"All"`, `null`}},
	{"ignoreStoreReadErrorWithClusterBreakingPotential", []string{`true`, `false`, `"true"`, `null`}},
	{"preconditions", []string{
		`{}`, `null`, `[]`, `{"uid":""}`, `{"uid":"other"}`, `{"resourceVersion":""}`, `{"resourceVersion":"1"}`, `{"resourceVersion":"x"}`,
		`{"uid":"other","resourceVersion":"1"}`, `{"unknown":"x"}`,
	}},
	{"apiVersion", []string{`"v1"`, `"v2"`, `"meta.k8s.io/v1"`, `"apps/v1"`, `""`}},
	{"kind", []string{`"DeleteOptions"`, `"Pod"`, `"Status"`, `"Invented"`}},
	{"unknown", []string{`1`}},
}

// queryOptions have other names, or other types, in a query.
var queryOptions = []struct {
	name   string
	values []string
}{
	{"gracePeriodSeconds", []string{`"0"`, `"1"`, `"-1"`, `"-2"`, `"86400"`, `"9223372036854775807"`, `"9223372036854775808"`, `"abc"`, `""`, `["0","1"]`}},
	{"propagationPolicy", []string{`"Orphan"`, `"Background"`, `"Foreground"`, `"Invented"`, `""`, `["Orphan","Background"]`}},
	{"orphanDependents", []string{`"true"`, `"false"`, `"1"`, `"abc"`, `""`}},
	{"dryRun", []string{`["All","All"]`, `"Invented"`, `["All","Invented"]`, `""`, absent}},
	{"ignoreStoreReadErrorWithClusterBreakingPotential", []string{`"true"`, `"false"`, `"abc"`, `""`}},
	{"uid", []string{stored, `"other"`, `""`}},
	{"resourceVersion", []string{stored, `"1"`, `"x"`, `""`}},
	{"limit", []string{`"-1"`, `""`, `"0"`, `"1"`, `"x"`}},
	{"fieldValidation", []string{`"Strict"`, `"Invented"`}},
	{"unknown", []string{`"1"`}},
}

// oddBodies are bodies that are no options, or those of another kind, with a dry run as far as
// that can be said.
var oddBodies = []string{
	allRuns, `{}`, `null`, `[]`, `"{"`, `"\"a\""`, `1`, `""`, `"{\"dryRun\":[\"All\"],\"dryRun\":[\"All\"]}"`, `"dryRun: [All]"`,
	`{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"example"},"dryRun":["All"]}`,
	`{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","dryRun":["All"]}`,
	`{"apiVersion":"policy/v1","kind":"Eviction","dryRun":["All"]}`,
}

// deletions returns every request that deletes an object with one option, and some that do so
// without a dry run.
func deletions(verb string, o *object) []*request {
	var list []*request
	add := func(edits ...edit) { list = append(list, &request{verb, o.kind, o.base, edits}) }
	dry, real := edit{path{inBody}, allRuns}, edit{path{inQuery, "dryRun"}, absent}
	for _, body := range oddBodies {
		add(edit{path{inBody}, body})
	}
	for _, option := range deleteOptions {
		for _, value := range option.values {
			add(dry, edit{path{inBody, option.name}, value})
			if o.base == small {
				add(real, edit{path{inBody}, `{}`}, edit{path{inBody, option.name}, value})
			}
		}
	}
	for _, name := range []string{"uid", "resourceVersion"} {
		add(dry, edit{path{inBody, "preconditions", name}, stored})
	}
	for _, option := range queryOptions {
		at := path{inQuery, option.name}
		for _, value := range option.values {
			add(edit{at, value})
			if option.name != "dryRun" && !strings.HasPrefix(value, "[") {
				add(real, edit{at, value})
			}
		}
		// Options of the body, and others of the query.
		add(dry, edit{at, option.values[0]})
	}
	return list
}

// bothOptions returns the options of two deletes, or nil if one would undo the other. Both may have
// the dry run that stands before the option.
func bothOptions(first, second []edit) []edit {
	edits := slices.Clone(first)
	for _, e := range second {
		if slices.ContainsFunc(first, func(f edit) bool { return f.String() == e.String() }) {
			continue
		}
		for _, f := range first {
			body := len(f.at) == 1 && f.value == allRuns && len(e.at) > 1
			if related(e.at, f.at) && !body {
				return nil
			}
		}
		edits = append(edits, e)
	}
	if len(edits) == len(first) {
		return nil
	}
	return edits
}

// bodyOf returns what is sent as a body.
func bodyOf(body any) ([]byte, error) {
	if text, ok := body.(rawBody); ok {
		return []byte(text), nil
	}
	text, err := json.Marshal(body)
	return bytes.ReplaceAll(text, []byte(secondOne), nil), err
}
