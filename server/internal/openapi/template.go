package openapi

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// template is the encoded paths of a custom kind, with marks in place of its names. Nearly all
// custom kinds have the same paths, which are half of their documents: whether there are
// namespaces, a status and a scale makes the difference. It never changes.
type template struct {
	text [versions]string
	used []string // names of models that the paths mention
}

// The marks. No other text of a path has an @.
const (
	markGroup   = "@group@"
	markVersion = "@version@"
	markKind    = "@kind@"
	markPlural  = "@plural@"
	markRoot    = "@root@"
	markID      = "@id@"
	markTag     = "@tag@"
	markObject  = "@object@"
	markList    = "@list@"
)

// filledTemplate is a template with the names of a kind.
type filledTemplate struct {
	*template
	names *strings.Replacer
}

func (f filledTemplate) write(to *bytes.Buffer, v version) {
	_, _ = f.names.WriteString(to, f.text[v]) // a Buffer returns no error
}

// maxTemplates bounds those that are kept: there are less than ten in practice.
const maxTemplates = 64

var templates = struct {
	sync.Mutex
	made map[string]*template
}{made: make(map[string]*template)}

// describeCustom describes a custom resource and all that is below it.
func (g *group) describeCustom(e Endpoint) error {
	object, list := g.models.object(e.Resource), ""
	if e.NewList != nil {
		list = g.models.list(e.Resource)
	}
	for _, sub := range e.Subresources {
		if sub.Body != nil {
			g.is(g.add(indirect(reflect.TypeOf(sub.Body))), sub.Kind)
		}
	}
	t, err := templateOf(e)
	if err != nil {
		return err
	}
	names := strings.NewReplacer(markGroup, g.gv.Group, markVersion, g.gv.Version, markKind, e.Kind, markPlural, e.Plural,
		markRoot, g.root, markID, g.id, markTag, g.tag, markObject, object, markList, list)
	for _, name := range t.used {
		g.used[names.Replace(name)] = true
	}
	g.custom = append(g.custom, filledTemplate{t, names})
	return nil
}

// templateOf returns the template for the paths of a custom resource.
func templateOf(e Endpoint) (*template, error) {
	key := fmt.Sprint(e.Namespaced, e.Strategy.ReturnDeleted, e.NewList != nil, e.Verbs)
	for _, sub := range e.Subresources {
		key += fmt.Sprint(" ", sub.Name, sub.Verbs, reflect.TypeOf(sub.Body), sub.Body != nil && sub.Kind.Version != "")
	}
	templates.Lock()
	defer templates.Unlock()
	if t := templates.made[key]; t != nil {
		return t, nil
	}
	t, err := newTemplate(e)
	if err == nil && len(templates.made) < maxTemplates {
		templates.made[key] = t
	}
	return t, err
}

func newTemplate(e Endpoint) (*template, error) {
	marked := Endpoint{Verbs: e.Verbs, Subresources: slices.Clone(e.Subresources), Resource: &resource.Resource{
		Group: markGroup, Version: markVersion, Kind: markKind, Plural: markPlural, Namespaced: e.Namespaced,
		Strategy: resource.Strategy{ReturnDeleted: e.Strategy.ReturnDeleted},
		New:      func() resource.Object { return &unstructured.Unstructured{} },
		NewList:  func() runtime.Object { return &unstructured.UnstructuredList{} },
	}}
	for i := range marked.Subresources {
		if sub := &marked.Subresources[i]; sub.Body == nil {
			sub.Kind = marked.GroupVersionKind()
		}
	}
	list := ""
	if e.NewList != nil {
		list = markList
	}
	g := newGroup(newModels(), schema.GroupVersion{Group: markGroup, Version: markVersion})
	g.root, g.id, g.tag = markRoot, markID, markTag
	g.paths = make(map[string]spec.PathItem) // without that of the group itself
	g.describeAs(marked, markObject, list)
	t := &template{used: sortedNames(g.used)}
	for v := range versions {
		text, err := g.encodePaths(v)
		if err != nil {
			return nil, err
		}
		t.text[v] = string(text)
	}
	return t, nil
}
