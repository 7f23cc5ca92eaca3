package customresource

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// resourceOf makes the endpoint of a version.
func (d *definition) resourceOf(v *version) *resource.Resource {
	r := &resource.Resource{
		Group: v.kind.Group, Version: v.kind.Version, Kind: v.kind.Kind, ListKind: d.names.ListKind,
		Plural: d.crd.Spec.Names.Plural, Singular: d.names.Singular, ShortNames: d.names.ShortNames, Categories: d.names.Categories,
		Namespaced: d.crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		New:        func() resource.Object { return &unstructured.Unstructured{} },
		NewList:    func() runtime.Object { return &unstructured.UnstructuredList{} },
		Fields:     v.fields(),
		Storage:    d.stored,
		Generation: v.generation,
		FromStorage: func(ctx context.Context, stored resource.Object) (resource.Object, error) {
			return d.fromStorage(ctx, v, stored)
		},
		ToStorage: d.toStorage,
		Status:    v.spec.Subresources != nil && v.spec.Subresources.Status != nil,
		Scale:     scaleOf(v.scaleSpec()),
		Strategy:  v.strategy(),
		Prune: func(obj resource.Object) ([]error, error) {
			return d.pruneBody(v, obj.(*unstructured.Unstructured))
		},
		OpenAPI:       v.schema.openAPI,
		SchemaJSON:    v.schema.json,
		TypeConverter: v.typeConverter,
		Deprecation:   d.deprecation(v),
	}
	if d.byWebhook() {
		r.FromStorageBatch = func(ctx context.Context, stored []resource.Object) ([]resource.Object, error) {
			ctx, cancel := d.boundConversion(ctx)
			defer cancel()
			return d.show(ctx, v, stored)
		}
	}
	prefix := r.Prefix()
	r.AsStored = func(json []byte, revision int64) bool { return v.asStored(prefix, json, revision) }
	r.Columns, r.Row = columnsOf(v.spec.AdditionalPrinterColumns)
	return r
}

// strategy is the strategy by which objects of the version are written.
func (v *version) strategy() resource.Strategy {
	return resource.Strategy{
		Default: func(obj resource.Object) {
			// Validation reports a schema that cannot be read.
			_ = v.defaults(obj.(*unstructured.Unstructured))
		},
		ValidateName: validateNames,
		ValidateCreate: func(obj resource.Object) field.ErrorList {
			return v.validateCreate(obj.(*unstructured.Unstructured))
		},
		ValidateUpdate: func(obj, old resource.Object) field.ErrorList {
			return v.validateUpdate(obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
		},
		Warnings: func(obj, old resource.Object) []string {
			return finalizerWarnings(obj, old)
		},
		StatusKeeps: resource.AllMetadata,
		ValidateStatus: func(obj, old resource.Object) field.ErrorList {
			return v.validateStatus(obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
		},
	}
}

// deprecation is the warning that requests for the version are answered with.
func (d *definition) deprecation(v *version) string {
	if !v.spec.Deprecated {
		return ""
	}
	if v.spec.DeprecationWarning != nil {
		return *v.spec.DeprecationWarning
	}
	message := fmt.Sprintf("%s %s is deprecated", v.apiVersion(), v.kind.Kind)
	var better []string
	for _, other := range d.crd.Spec.Versions {
		if other.Served && !other.Deprecated && kubeversion.CompareKubeAwareVersionStrings(v.spec.Name, other.Name) < 0 {
			better = append(better, other.Name)
		}
	}
	if len(better) == 0 {
		return message
	}
	best := slices.MaxFunc(better, kubeversion.CompareKubeAwareVersionStrings)
	return message + fmt.Sprintf("; use %s/%s %s", v.kind.Group, best, v.kind.Kind)
}

// scaleOf reads and writes the fields of a Scale at the definition's paths.
func scaleOf(s *apiextensionsv1.CustomResourceSubresourceScale) *resource.Scale {
	if s == nil {
		return nil
	}
	wanted, observed := splitPath(s.SpecReplicasPath), splitPath(s.StatusReplicasPath)
	return &resource.Scale{
		ReplicasPath: wanted,
		Get: func(obj resource.Object) (spec *int32, status int32, selector string, err error) {
			object := obj.(*unstructured.Unstructured).Object
			replicas, found, err := unstructured.NestedInt64(object, wanted...)
			if err != nil {
				return nil, 0, "", err
			}
			if found {
				spec = new(int32(replicas))
			}
			has, _, err := unstructured.NestedInt64(object, observed...)
			if err != nil {
				return nil, 0, "", err
			}
			if s.LabelSelectorPath != nil && *s.LabelSelectorPath != "" {
				if selector, _, err = unstructured.NestedString(object, splitPath(*s.LabelSelectorPath)...); err != nil {
					return nil, 0, "", err
				}
			}
			return spec, int32(has), selector, nil
		},
		Set: func(obj resource.Object, replicas int32) error {
			return unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, int64(replicas), wanted...)
		},
	}
}
