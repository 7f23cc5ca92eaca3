package differential

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

// doubled is the literal of a member that stands in its object twice. No JSON of Go says so: the second
// one has a name that ends with secondOne until it is sent.
const (
	doubled   = "doubled"
	secondOne = "\u2060" // in no name and no value
)

// double returns an object in which a member stands twice.
func double(object map[string]any, at path) (map[string]any, error) {
	value, _ := get(object, at)
	name, _ := at[len(at)-1].(string)
	return edit{at: append(at[:len(at)-1:len(at)-1], name+secondOne), value: literal(value)}.apply(object)
}

// levels are the values of fieldValidation; absent is the default.
var levels = []string{absent, `"Ignore"`, `"Warn"`, `"Strict"`}

// oddLevels are tried with one field.
var oddLevels = []string{`""`, `"Invented"`, `"strict"`, `["Warn","Strict"]`}

// unknownField is a member that no kind has.
const unknownField = "unknownField"

// fieldValidations returns requests with fields that are unknown or stand twice, at each level: n of them
// as the seed decides, all if it is 0.
func fieldValidations(objects []*object, verbs []string, seed uint64, n int) []*request {
	var all []*request
	for _, verb := range verbs {
		for _, o := range objects {
			if applies(verb, o) && !isSequence(verb) && !slices.Contains([]string{readBack, deleteOne, deleteCollection}, verb) {
				all = append(all, validationsOf(verb, o)...)
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if n > 0 && n < len(all) {
		all = all[:n]
	}
	return versioned(all)
}

func validationsOf(verb string, o *object) []*request {
	var list []*request
	add := func(level string, edits ...edit) {
		if level != absent {
			edits = append([]edit{{path{inQuery, "fieldValidation"}, level}}, edits...)
		}
		list = append(list, &request{verb, o.kind, o.base, edits})
	}
	for _, e := range invalidFields(verb, o) {
		for _, level := range levels {
			add(level, e)
		}
	}
	unknown := edit{path{unknownField}, `1`}
	for _, level := range oddLevels {
		add(level, unknown)
	}
	if verb == apply {
		return list // of two unknown fields an apply patch is refused for the one or for both, each time otherwise
	}
	for _, level := range levels {
		add(level, unknown, edit{path{"metadata", unknownField}, `1`}, edit{path{"kind"}, doubled})
	}
	return list
}

// invalidFields returns what is no field of an object, or one for the second time.
func invalidFields(verb string, o *object) []edit {
	list := []edit{{path{unknownField}, `1`}, {path{"metadata", unknownField}, `{"a":1}`}, {path{"kind"}, doubled}, {path{"metadata"}, doubled}, {path{"metadata", "name"}, doubled}}
	visitFields(o.kind, skipFor(verb), o.kind.schema, o.value, nil, func(at path, s *schema, current any) {
		name, isName := at[len(at)-1].(string)
		if current == nil || !isName || at[0] == "metadata" {
			return
		}
		if len(at) > 1 || at[0] != "kind" { // which is there
			list = append(list, edit{at, doubled})
		}
		if upper := strings.ToUpper(name[:1]) + name[1:]; upper != name && len(at) == 1 {
			list = append(list, edit{path{upper}, literal(current)})
		}
		if _, isObject := current.(map[string]any); isObject && s.kind == objectValue {
			list = append(list, edit{at.child(unknownField), `1`})
		}
		if items, _ := current.([]any); len(items) > 0 && s.kind == arrayValue && s.items.kind == objectValue {
			list = append(list, edit{at.child(0).child(unknownField), `1`})
		}
	})
	return list
}

// queryOf writes what the edits of a query say, as it follows another one.
func queryOf(edits []edit) (string, error) {
	var b strings.Builder
	for _, e := range edits {
		if e.at[0] != inQuery {
			continue
		}
		value, _, err := parseLiteral(e.value)
		if err != nil {
			return "", err
		}
		values, isList := value.([]any)
		if !isList {
			values = []any{value}
		}
		name, _ := e.at[len(e.at)-1].(string)
		for _, item := range values {
			text, _ := item.(string)
			b.WriteString("&" + url.QueryEscape(name) + "=" + url.QueryEscape(text))
		}
	}
	return b.String(), nil
}
