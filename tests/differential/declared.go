package differential

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed declared.yaml
var declaredYAML []byte

// declaration is a difference that stands on purpose.
type declaration struct {
	// Kinds it is about, as "apps/v1 Deployment", or "Deployment" for every version; none:
	// all.
	Kinds []string `json:"kinds,omitempty"`
	// Verbs it is about; none: all.
	Verbs []string `json:"verbs,omitempty"`
	// Class of the difference; none: all.
	Class class `json:"class,omitempty"`
	// Left: it is about what a delete has left, not about the answer.
	Left bool `json:"left,omitempty"`
	// At matches all of the place, Request a part of the request's name, Ours and Judge a
	// part of the answers: regular expressions. Empty matches everything. What Except
	// matches a part of is no such request.
	At      string `json:"at,omitempty"`
	Request string `json:"request,omitempty"`
	Except  string `json:"except,omitempty"`
	Ours    string `json:"ours,omitempty"`
	Judge   string `json:"judge,omitempty"`
	// Field it is about, or what of a request, as docs/users/differences.md says it.
	Field string `json:"field"`
	// Why it stands, and what a user notices.
	Why     string `json:"why"`
	Notices string `json:"notices"`

	at, request, except, ours, judge *regexp.Regexp
}

type declarations []*declaration

// parseDeclarations reads a table and checks it.
func parseDeclarations(text []byte) (declarations, error) {
	var list declarations
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		return nil, err
	}
	for i, d := range list {
		if d.Field == "" || d.Why == "" || d.Notices == "" {
			return nil, fmt.Errorf("declaration %d (%s %s): say which field it is about, why it stands, and what a user notices", i+1, d.Class, d.At)
		}
		if d.Class != "" && !slices.Contains(classes, d.Class) {
			return nil, fmt.Errorf("declaration %d: the class %q is none of %q", i+1, d.Class, classes)
		}
		for _, pattern := range []struct {
			compiled **regexp.Regexp
			text     string
		}{{&d.at, d.At}, {&d.request, d.Request}, {&d.except, d.Except}, {&d.ours, d.Ours}, {&d.judge, d.Judge}} {
			text := pattern.text
			if pattern.compiled == &d.at && text != "" {
				text = "^(?:" + text + ")$"
			}
			compiled, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("declaration %d: %w", i+1, err)
			}
			*pattern.compiled = compiled
		}
	}
	return list, nil
}

// find returns the first declaration of a difference, or nil.
func (list declarations) find(d *difference) *declaration {
	for _, known := range list {
		if known.matches(d) {
			return known
		}
	}
	return nil
}

func (known *declaration) matches(d *difference) bool {
	return (known.Class == "" || known.Class == d.class) &&
		(len(known.Verbs) == 0 || slices.Contains(known.Verbs, d.verb)) &&
		(len(known.Kinds) == 0 || matchesKind(known.Kinds, d.kind)) &&
		(!known.Left || strings.HasPrefix(d.at, afterIt)) && (known.Except == "" || !known.except.MatchString(d.asked())) &&
		known.at.MatchString(inObject(d.at)) && known.request.MatchString(d.asked()) && known.ours.MatchString(d.ours) && known.judge.MatchString(d.judge)
}

// inObject is a place as it is in an object that is asked for alone, where it may be in what a delete
// has left, in a list, a row of a table or an event.
func inObject(at string) string {
	return inShape(strings.TrimPrefix(at, afterIt))
}

// matchesKind reports whether a list has a kind, at its version ("apps/v1 Deployment") or
// at every version ("Deployment").
func matchesKind(kinds []string, kind string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool { return k == kind || strings.HasSuffix(kind, " "+k) })
}

// gatesOf finds the feature gates that a reason begins with.
var gatesOf = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*(?:(?:, | and )[A-Z][A-Za-z0-9]*)*): (?:there are no feature gates|who writes a field that kube-apiserver drops)`)

// alsoOpen are gates on which kube-apiserver makes others depend.
var alsoOpen = map[string][]string{
	"DRAPartitionableDevicesType": {"DRAResourcePoolStatus"},
}

// gates are those of which the declarations say that there are none here, and those on which they
// depend, in the order of their names.
func (list declarations) gates() []string {
	var gates []string
	for _, d := range list {
		if found := gatesOf.FindStringSubmatch(d.Why); found != nil {
			gates = append(gates, strings.Split(strings.ReplaceAll(found[1], " and ", ", "), ", ")...)
		}
	}
	for _, gate := range gates {
		gates = append(gates, alsoOpen[gate]...)
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}
