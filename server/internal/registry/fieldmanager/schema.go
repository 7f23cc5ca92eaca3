package fieldmanager

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/mergestrategy"
)

// goTypes is the TypeConverter of a kind with a Go type. What client-go has for
// the built-in kinds says the same, but takes 50 ms to parse, which is ten times
// what a server needs to start.
type goTypes struct{ parseable typed.ParseableType }

// ObjectToTyped returns obj, of the Go type or unstructured, with its type.
func (g goTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return g.parseable.FromUnstructured(u.Object, opts...)
	}
	return g.parseable.FromStructured(obj, opts...)
}

// TypedToObject returns an unstructured object.
func (goTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewDeducedTypeConverter().TypedToObject(value)
}

var converters sync.Map // reflect.Type -> goTypes; one entry per kind that was applied

// TypeConverter returns what merging must know of the resource's kind.
func TypeConverter(res *resource.Resource) (managedfields.TypeConverter, error) {
	if res.TypeConverter != nil {
		types, err := res.TypeConverter()
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", res.GroupVersionKind(), err)
		}
		return types, nil
	}
	empty := res.New()
	if _, custom := empty.(*unstructured.Unstructured); custom {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	t := reflect.TypeOf(empty).Elem()
	if types, ok := converters.Load(t); ok {
		return types.(goTypes), nil
	}
	types, _ := converters.LoadOrStore(t, goTypes{parseable(typeInfoOf(t))})
	return types.(goTypes), nil
}

// parseable returns the type that structured-merge-diff knows a typeInfo as.
func parseable(root *typeInfo) typed.ParseableType {
	b := schemaBuilder{done: map[string]bool{}}
	ref := b.ref(root)
	b.types = append(b.types, openTypes()...)
	parser := typed.Parser{Schema: schema.Schema{Types: b.types}}
	return parser.Type(*ref.NamedType)
}

// rawType is the type of fields with JSON of other kinds, such as the data of a
// ControllerRevision, which Kubernetes' schemas have whole: it has one owner.
var rawType = reflect.TypeFor[runtime.RawExtension]()

type schemaBuilder struct {
	types []schema.TypeDef
	done  map[string]bool
}

// ref returns a reference to a typeInfo's type, which it defines the first time.
func (b *schemaBuilder) ref(s *typeInfo) schema.TypeRef {
	switch s.kind {
	case structKind:
		return b.structRef(s)
	case mapKind:
		m := &schema.Map{ElementType: b.ref(s.elem)}
		if s.atomic {
			m.ElementRelationship = schema.Atomic
		}
		return schema.TypeRef{Inlined: schema.Atom{Map: m}}
	case listKind, keyedListKind, setKind:
		l := &schema.List{ElementType: b.ref(s.elem), ElementRelationship: schema.Atomic}
		if !s.atomic {
			l.ElementRelationship = schema.Associative
		}
		for _, k := range s.keys {
			l.Keys = append(l.Keys, k.field.name)
		}
		return schema.TypeRef{Inlined: schema.Atom{List: l}}
	case anyKind:
		if s.t == rawType {
			return named(closedName)
		}
		return named(openName)
	}
	kind := scalarOf(s.t)
	return schema.TypeRef{Inlined: schema.Atom{Scalar: &kind}}
}

func (b *schemaBuilder) structRef(s *typeInfo) schema.TypeRef {
	name := mergestrategy.TypeName(s.t)
	ref := named(name)
	if inherent := mergestrategy.OfType(s.t).Kind == mergestrategy.Atomic; inherent != s.atomic {
		relationship := schema.Separable
		if s.atomic {
			relationship = schema.Atomic
		}
		ref.ElementRelationship = &relationship
	}
	if b.done[name] {
		return ref
	}
	b.done[name] = true
	m := &schema.Map{}
	if mergestrategy.OfType(s.t).Kind == mergestrategy.Atomic {
		m.ElementRelationship = schema.Atomic
	}
	if len(s.fields) == 0 {
		m.ElementType = named(openName)
	}
	for i := range s.fields {
		f := &s.fields[i]
		m.Fields = append(m.Fields, schema.StructField{Name: f.name, Type: b.ref(f.info), Default: keyDefault(s, f)})
	}
	b.types = append(b.types, schema.TypeDef{Name: name, Atom: schema.Atom{Map: m}})
	return ref
}

func named(name string) schema.TypeRef { return schema.TypeRef{NamedType: &name} }

// keyDefault is the field's default if it may be part of a key, which is all
// that defaults are asked for.
func keyDefault(s *typeInfo, f *field) any {
	if f.info.kind != scalarKind {
		return nil
	}
	return defaultKey(s, f)
}

func scalarOf(t reflect.Type) schema.Scalar {
	switch t.Kind() {
	case reflect.String:
		return schema.String
	case reflect.Bool:
		return schema.Boolean
	case reflect.Struct:
		if t.Name() == "Duration" {
			return schema.String
		}
		return schema.Untyped
	case reflect.Slice:
		return schema.String
	}
	return schema.Numeric
}

const (
	openName   = "open"
	closedName = "open, and whole"
)

// openTypes are those of arbitrary JSON: maps are open, lists are whole.
func openTypes() []schema.TypeDef {
	untyped := schema.Untyped
	list := &schema.List{ElementType: named(closedName), ElementRelationship: schema.Atomic}
	return []schema.TypeDef{
		{Name: openName, Atom: schema.Atom{Scalar: &untyped, List: list,
			Map: &schema.Map{ElementType: named(openName), ElementRelationship: schema.Separable}}},
		{Name: closedName, Atom: schema.Atom{Scalar: &untyped, List: list,
			Map: &schema.Map{ElementType: named(closedName), ElementRelationship: schema.Atomic}}},
	}
}
