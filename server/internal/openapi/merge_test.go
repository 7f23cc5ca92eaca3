package openapi

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// TestModelsFollowTheApplySchema: merge strategies, defaults and unions are
// those of the schema by which clients merge. The server does not link that
// schema, which comes with all apply configurations of client-go.
func TestModelsFollowTheApplySchema(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	typed, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(pod)
	if err != nil {
		t.Fatal(err)
	}
	m := &models{byName: make(map[string]*model), enums: allEnums()} // without the common ones
	var embedded []string                                            // their fields are those of other models
	for name, typ := range describedModels(t) {
		m.add(typ)
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct {
				embedded = append(embedded, modelName(f.Type))
			}
		}
		if def, ok := typed.Schema().FindNamedType(name); ok && def.Map == nil && len(m.byName[name].schema.Properties) > 0 {
			t.Errorf("%s is no map in the apply schema", name)
		}
	}
	compared := 0
	for name, entry := range m.byName {
		def, known := typed.Schema().FindNamedType(name)
		if known && def.Map != nil {
			compared++
			compareStruct(t, name, entry.schema, def.Map)
			continue
		}
		for field, p := range entry.schema.Properties {
			if p.Extensions["x-kubernetes-list-type"] == "atomic" && !slices.Contains(embedded, name) {
				t.Errorf("%s.%s is atomic, though clients cannot apply it", name, field)
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d models were compared", compared)
	}
}

func compareStruct(t *testing.T, name string, ours spec.Schema, theirs *smd.Map) {
	t.Helper()
	if atomic := ours.Extensions["x-kubernetes-map-type"] == "atomic"; atomic != (theirs.ElementRelationship == smd.Atomic) {
		t.Errorf("%s: atomic is %v, want %v", name, atomic, !atomic)
	}
	var union []any
	for _, u := range theirs.Unions {
		fields := map[string]string{}
		for _, f := range u.Fields {
			fields[f.FieldName] = f.DiscriminatorValue
		}
		extension := map[string]any{"fields-to-discriminateBy": fields}
		if u.Discriminator != nil {
			extension["discriminator"] = *u.Discriminator
		}
		union = append(union, extension)
	}
	if got, _ := ours.Extensions["x-kubernetes-unions"].([]any); !reflect.DeepEqual(got, union) {
		t.Errorf("%s: unions %v, want %v", name, got, union)
	}
	for field, p := range ours.Properties {
		f, ok := theirs.FindField(field)
		if !ok {
			continue // apiVersion and kind, of which the apply schema says nothing more
		}
		if want := jsonValue(f.Default); !reflect.DeepEqual(p.Default, want) {
			t.Errorf("%s.%s: default %#v, want %#v", name, field, p.Default, want)
		}
		compareField(t, name+"."+field, p, f.Type)
	}
}

func compareField(t *testing.T, path string, ours spec.Schema, theirs smd.TypeRef) {
	t.Helper()
	var listType, mapType any
	var keys any
	if list := theirs.Inlined.List; list != nil && ours.Items != nil {
		switch {
		case list.ElementRelationship == smd.Atomic:
			listType = "atomic"
		case len(list.Keys) > 0:
			listType, keys = "map", list.Keys
		default:
			listType = "set"
		}
	}
	inlined := theirs.Inlined.Map
	if inlined != nil && ours.AdditionalProperties != nil && inlined.ElementRelationship == smd.Atomic ||
		theirs.ElementRelationship != nil && *theirs.ElementRelationship == smd.Atomic {
		mapType = "atomic"
	}
	for extension, want := range map[string]any{
		"x-kubernetes-list-type": listType, "x-kubernetes-map-type": mapType, "x-kubernetes-list-map-keys": keys,
	} {
		if got := ours.Extensions[extension]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %v, want %v", path, extension, got, want)
		}
	}
}

// jsonValue returns a default, as YAML has it, in the types of JSON.
func jsonValue(value any) any {
	fields, ok := value.(map[any]any)
	if !ok {
		return value
	}
	converted := make(map[string]any, len(fields))
	for k, v := range fields {
		converted[k.(string)] = jsonValue(v)
	}
	return converted
}
