package fieldmanager

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// clientGo is the schema of the built-in kinds that clients merge by.
var clientGo managedfields.TypeConverter = applyconfigurations.NewTypeConverter(scheme.Scheme)

// TestEveryKindHasTheSchemaOfClientGo: a client and a server that disagree on
// what a list is would merge it differently.
func TestEveryKindHasTheSchemaOfClientGo(t *testing.T) {
	compared := 0
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		obj := reflect.New(goType).Interface()
		object, ok := obj.(resource.Object)
		if !ok {
			continue
		}
		object.GetObjectKind().SetGroupVersionKind(gvk)
		theirs, err := clientGo.ObjectToTyped(object)
		if err != nil {
			continue // client-go has nothing to apply of the kind
		}
		ours, err := goTypes{parseable(typeInfoOf(goType))}.ObjectToTyped(object)
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		compared++
		c := comparison{t: t, ours: ours.Schema(), theirs: theirs.Schema(), seen: map[string]bool{}}
		c.compare(gvk.String(), ours.TypeRef(), theirs.TypeRef())
	}
	if compared < 100 {
		t.Errorf("only %d kinds were compared", compared)
	}
}

type comparison struct {
	t            *testing.T
	ours, theirs *schema.Schema
	seen         map[string]bool
}

func (c *comparison) compare(path string, ours, theirs schema.TypeRef) {
	if theirs.NamedType != nil {
		// The untyped ones are two types of theirs, and open or whole of ours.
		name := *theirs.NamedType
		if name == "__untyped_atomic_" && (ours.NamedType == nil || *ours.NamedType != closedName) {
			c.t.Errorf("%s: it is not whole", path)
		}
		if strings.HasPrefix(name, "__") || strings.HasSuffix(name, ".RawExtension") || strings.HasSuffix(name, ".FieldsV1") {
			return
		}
		id := fmt.Sprint(name, theirs.ElementRelationship)
		if c.seen[id] {
			return
		}
		c.seen[id] = true
	}
	a, _ := c.ours.Resolve(ours)
	b, _ := c.theirs.Resolve(theirs)
	switch {
	case b.Scalar != nil && b.List != nil && b.Map != nil:
		if a.Scalar == nil || a.List == nil || a.Map == nil {
			c.t.Errorf("%s: %+v, want anything", path, a)
		}
	case a.Scalar != nil && b.Scalar != nil:
		if *a.Scalar != *b.Scalar {
			c.t.Errorf("%s: %s, want %s", path, *a.Scalar, *b.Scalar)
		}
	case a.List != nil && b.List != nil:
		sorted := func(keys []string) []string { return slices.Sorted(slices.Values(keys)) }
		if a.List.ElementRelationship != b.List.ElementRelationship || !slices.Equal(sorted(a.List.Keys), sorted(b.List.Keys)) {
			c.t.Errorf("%s: %s %v, want %s %v", path, a.List.ElementRelationship, a.List.Keys, b.List.ElementRelationship, b.List.Keys)
		}
		c.compare(path+"[]", a.List.ElementType, b.List.ElementType)
		c.compareKeys(path, a.List, b.List)
	case a.Map != nil && b.Map != nil:
		c.compareMaps(path, a.Map, b.Map)
	default:
		c.t.Errorf("%s: %+v, want %+v", path, a, b)
	}
}

func (c *comparison) compareKeys(path string, a, b *schema.List) {
	for _, k := range b.Keys {
		ours, _ := c.ours.Resolve(a.ElementType)
		theirs, _ := c.theirs.Resolve(b.ElementType)
		f, _ := ours.Map.FindField(k)
		g, _ := theirs.Map.FindField(k)
		if f.Default != g.Default {
			c.t.Errorf("%s: default of key %s: %v, want %v", path, k, f.Default, g.Default)
		}
	}
}

func (c *comparison) compareMaps(path string, a, b *schema.Map) {
	if (a.ElementRelationship == schema.Atomic) != (b.ElementRelationship == schema.Atomic) {
		c.t.Errorf("%s: %q, want %q", path, a.ElementRelationship, b.ElementRelationship)
	}
	if len(a.Fields) != len(b.Fields) {
		c.t.Errorf("%s: %d fields, want %d", path, len(a.Fields), len(b.Fields))
	}
	for _, f := range b.Fields {
		g, ok := a.FindField(f.Name)
		if !ok {
			c.t.Errorf("%s.%s is missing", path, f.Name)
			continue
		}
		c.compare(path+"."+f.Name, g.Type, f.Type)
	}
	if len(b.Fields) == 0 && (b.ElementType.NamedType != nil || b.ElementType.Inlined != (schema.Atom{})) {
		c.compare(path+"{}", a.ElementType, b.ElementType)
	}
}
