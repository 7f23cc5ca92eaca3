package customresource

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// typeConverter returns what server-side apply has to know about the lists and
// maps of the version's kind (KEP-555).
func (v *version) typeConverter() (managedfields.TypeConverter, error) {
	c := v.schema
	c.typing.Do(func() {
		if _, c.typeErr = c.structural(); c.typeErr != nil {
			return
		}
		published := *c.openAPI()
		published.Properties = maps.Clone(published.Properties)
		published.Extensions = maps.Clone(published.Extensions)
		if published.Properties == nil {
			published.Properties = map[string]spec.Schema{}
		}
		for name, s := range envelope() {
			published.Properties[name] = s
		}
		published.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
			"group": v.kind.Group, "version": v.kind.Version, "kind": v.kind.Kind,
		}})
		c.types, c.typeErr = managedfields.NewTypeConverter(map[string]*spec.Schema{"object": &published}, c.preserve)
	})
	return c.types, c.typeErr
}

// envelope is the schema of the fields that every object has.
func envelope() map[string]spec.Schema {
	return map[string]spec.Schema{
		"kind": *spec.StringProperty(), "apiVersion": *spec.StringProperty(), "metadata": objectMeta(),
	}
}

// objectMeta is the schema of metadata as far as field ownership needs it: which
// lists are sets, and which keys the elements of other lists have.
func objectMeta() spec.Schema {
	owner := object(map[string]spec.Schema{
		"apiVersion": *spec.StringProperty(), "kind": *spec.StringProperty(), "name": *spec.StringProperty(),
		"uid": *spec.StringProperty(), "controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	})
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	owners := *spec.ArrayProperty(&owner)
	owners.AddExtension("x-kubernetes-list-type", "map")
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	finalizers := *spec.ArrayProperty(spec.StringProperty())
	finalizers.AddExtension("x-kubernetes-list-type", "set")
	managed := *spec.ArrayProperty(&spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}}})
	managed.AddExtension("x-kubernetes-list-type", "atomic")
	return object(map[string]spec.Schema{
		"name": *spec.StringProperty(), "generateName": *spec.StringProperty(), "namespace": *spec.StringProperty(),
		"selfLink": *spec.StringProperty(), "uid": *spec.StringProperty(), "resourceVersion": *spec.StringProperty(),
		"generation": *spec.Int64Property(), "creationTimestamp": *spec.StringProperty(), "deletionTimestamp": *spec.StringProperty(),
		"deletionGracePeriodSeconds": *spec.Int64Property(),
		"labels":                     *spec.MapProperty(spec.StringProperty()), "annotations": *spec.MapProperty(spec.StringProperty()),
		"ownerReferences": owners, "finalizers": finalizers, "managedFields": managed,
	})
}

func object(properties map[string]spec.Schema) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
}
