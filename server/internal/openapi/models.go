package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/mergestrategy"
)

const definitions = "#/definitions/"

// models are schemas read off Go types, by the name under which Kubernetes
// publishes them. They refer to each other the way of version 2. A schema is
// never changed once it is in the map, but is shared by the documents that are
// made from it. Not safe for concurrent use: one build owns them, and drops
// them, because the documents are kept encoded. Only those of common stay.
type models struct {
	byName map[string]*model
	enums  map[reflect.Type][]any
}

type model struct {
	schema spec.Schema
	uses   []string // names of the models it refers to
	kinds  []schema.GroupVersionKind
	leaf   bool               // a type that says itself how it is written
	custom *resource.Resource // has the schema, in which only direct properties are references; nil: schema is set
	text   [versions][]byte   // encoded, on first use
}

// common are the models that the documents of all custom kinds have, encoded. They are made
// once for the process, and never changed: a hundred definitions that are installed would
// otherwise take most of their time to read the same types again.
var common = sync.OnceValues(func() (*models, error) {
	m := &models{byName: make(map[string]*model), enums: allEnums()}
	newGroup(m, schema.GroupVersion{Group: "common", Version: "v1"})
	for _, t := range []reflect.Type{reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.ListMeta](), reflect.TypeFor[autoscalingv1.Scale]()} {
		m.add(t)
	}
	for name := range m.byName {
		for v := range versions {
			if _, err := m.encoded(name, v); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
})

var allEnums = sync.OnceValue(enums)

// newModels returns the common models, to which others are added.
func newModels() *models {
	shared, err := common()
	if err != nil { // they are made of types of the program, which a test encodes
		return &models{byName: make(map[string]*model), enums: allEnums()}
	}
	return &models{byName: maps.Clone(shared.byName), enums: shared.enums}
}

// named is a type that knows its published name.
type named interface{ OpenAPIModelName() string }

// modelName returns the name under which a struct type is published.
func modelName(t reflect.Type) string {
	if n, ok := reflect.Zero(t).Interface().(named); ok {
		return n.OpenAPIModelName()
	}
	// The rule behind the names: the domain of the import path reversed, the
	// rest with dots.
	domain, path, _ := strings.Cut(t.PkgPath(), "/")
	return strings.ReplaceAll(reversed(domain)+"/"+path, "/", ".") + "." + t.Name()
}

// reversed turns "apps.example.com" into "com.example.apps".
func reversed(domain string) string {
	labels := strings.Split(domain, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".")
}

// add makes the model of a struct type, and of all that it refers to, and
// returns its name.
func (m *models) add(t reflect.Type) string {
	name := modelName(t)
	if m.byName[name] != nil {
		return name
	}
	entry := &model{}
	m.byName[name] = entry // before its fields, which may refer back to it
	if leaf, ok := leafSchema(t); ok {
		entry.schema, entry.leaf = leaf, true
		return name
	}
	entry.kinds = kindsOf(t)
	s := structReader{models: m, name: name, typ: t, docs: docsOf(t)}
	s.schema.Type = spec.StringOrArray{"object"}
	s.schema.Description = describe(s.docs[""], nil)
	s.fields(t, s.docs)
	if mergestrategy.OfType(t).Kind == mergestrategy.Atomic {
		s.schema.AddExtension("x-kubernetes-map-type", "atomic")
	}
	if union, ok := unions[name]; ok {
		s.schema.AddExtension("x-kubernetes-unions", []any{union.extension()})
	}
	entry.schema, entry.uses = s.schema, s.uses
	return name
}

// kindsOf returns the kinds that a type stands for: none for a part of an
// object, many for those that every group version shares (DeleteOptions).
func kindsOf(t reflect.Type) []schema.GroupVersionKind {
	obj, ok := reflect.New(t).Interface().(runtime.Object)
	if !ok {
		return nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return nil // not registered: the endpoint that serves it says its kind
	}
	// A clone: the slice is the scheme's, which all of the process use.
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k schema.GroupVersionKind) bool { return k.Version == runtime.APIVersionInternal })
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// is adds a kind that a model stands for. The model may be a common one, and is replaced.
func (m *models) is(name string, kind schema.GroupVersionKind) {
	if entry := *m.byName[name]; !slices.Contains(entry.kinds, kind) {
		entry.kinds, entry.text = append(slices.Clip(entry.kinds), kind), [versions][]byte{}
		m.byName[name] = &entry
	}
}

// definition returns a model as it is published: with its kinds.
func (m *models) definition(name string) spec.Schema {
	entry := m.byName[name]
	s := m.schemaOf(entry)
	if len(entry.kinds) == 0 {
		return s
	}
	s.Extensions = maps.Clone(s.Extensions) // those of the model are shared
	s.AddExtension(kindExtension, kindValues(entry.kinds))
	return s
}

func kindValues(kinds []schema.GroupVersionKind) []any {
	list := make([]any, 0, len(kinds))
	for _, kind := range kinds {
		list = append(list, kindValue(kind))
	}
	return list
}

// schemaOf returns a model's schema. That of a custom kind is made anew with each call.
func (m *models) schemaOf(entry *model) spec.Schema {
	if entry.custom != nil {
		return m.customSchema(entry.custom)
	}
	return entry.schema
}

// kindExtension names the kind of a model (a list) or of an operation.
const kindExtension = "x-kubernetes-group-version-kind"

func kindValue(kind schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

// refTo returns a reference to a model.
func refTo(name string) *spec.Schema { return spec.RefSchema(definitions + name) }

// reach adds to found the names of all models that a name needs, itself
// included.
func (m *models) reach(name string, found map[string]bool) {
	if found[name] {
		return
	}
	found[name] = true
	if entry := m.byName[name]; entry != nil {
		for _, used := range entry.uses {
			m.reach(used, found)
		}
	}
}

// docsOf returns a type's descriptions by JSON name, its own under "". A
// method that was promoted from an embedded type describes that one, and is
// not taken.
func docsOf(t reflect.Type) map[string]string {
	docs := swaggerDoc(t)
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && sameMap(docs, swaggerDoc(f.Type)) {
			return nil
		}
	}
	return docs
}

func swaggerDoc(t reflect.Type) map[string]string {
	if d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return d.SwaggerDoc()
	}
	return nil
}

func sameMap(a, b map[string]string) bool {
	return a != nil && b != nil && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
