package customresource

import (
	"slices"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// definition is one state of a CustomResourceDefinition, ready to be served. It is
// immutable; a change makes another definition, which shares what has not changed.
type definition struct {
	crd      *crdMeta
	names    apiextensionsv1.CustomResourceDefinitionNames // the accepted ones
	stored   *resource.Resource                            // the same for as long as the definition exists
	versions []*version
	convert  converter
}

// generations is the last number given; see resource.Resource.Generation.
var generations atomic.Uint64

// define makes the definition that replaces old, which is nil for a new one. hooks
// makes the callers of conversion webhooks.
func define(crd *crdMeta, names apiextensionsv1.CustomResourceDefinitionNames, old *definition, hooks *Webhooks) *definition {
	d := &definition{crd: crd, names: names}
	if old != nil {
		d.stored = old.stored
	} else {
		d.stored = storedResource(crd, names)
	}
	d.convert = converterOf(crd, old, hooks)
	same := d.readsLike(old)
	before := map[string]*version{}
	if old != nil {
		for _, v := range old.versions {
			before[v.spec.Name] = v
		}
	}
	for i := range crd.Spec.Versions {
		spec := &crd.Spec.Versions[i]
		d.versions = append(d.versions, d.newVersion(spec, before[spec.Name], old, same))
	}
	for _, v := range d.versions {
		if v.spec.Served {
			d.stored.Select(v.fields()...)
			v.resource = d.resourceOf(v)
		}
	}
	return d
}

// storedResource describes what the cache holds: objects of all versions.
func storedResource(crd *crdMeta, names apiextensionsv1.CustomResourceDefinitionNames) *resource.Resource {
	return &resource.Resource{
		Group: crd.Spec.Group, Version: crd.storageVersion(), Kind: names.Kind, ListKind: names.ListKind,
		Plural: crd.Spec.Names.Plural, Singular: names.Singular, Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		StorePrefix: "/registry/" + crd.Spec.Group + "/" + crd.Spec.Names.Plural + "/",
		Mixed:       true,
		New:         func() resource.Object { return &unstructured.Unstructured{} },
		NewList:     func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
}

// newVersion takes over from old, whose version of that name is before, what the change does
// not touch. same is the result of readsLike.
func (d *definition) newVersion(spec *crdVersion, before *version, old *definition, same bool) *version {
	v := &version{
		spec: spec, kind: schema.GroupVersionKind{Group: d.crd.Spec.Group, Version: spec.Name, Kind: d.names.Kind},
		generation: generations.Add(1),
	}
	if before == nil || before.spec.Schema != spec.Schema || old.crd.Spec.PreserveUnknownFields != d.crd.Spec.PreserveUnknownFields {
		v.schema = &compiledSchema{schemas: d.crd.schemas, version: spec.Name, preserve: d.crd.Spec.PreserveUnknownFields}
		v.trustedAfter = new(atomic.Int64)
		if old == nil {
			v.trustAfter(d.crd.revision)
		} else {
			v.trustAfter(untrusted)
		}
		return v
	}
	v.schema, v.trustedAfter = before.schema, before.trustedAfter
	if same && equality.Semantic.DeepEqual(before.spec.AdditionalPrinterColumns, spec.AdditionalPrinterColumns) {
		v.generation = before.generation
	}
	return v
}

// readsLike reports whether stored objects are read as by old, columns aside: all
// its versions still exist with their schemas, and conversion is the same. It is
// called once per change, as a definition may have thousands of versions.
func (d *definition) readsLike(old *definition) bool {
	if old == nil || !equality.Semantic.DeepEqual(old.crd.Spec.Conversion, d.crd.Spec.Conversion) {
		return false
	}
	schemas := make(map[string]digest, len(d.crd.Spec.Versions))
	for i := range d.crd.Spec.Versions {
		spec := &d.crd.Spec.Versions[i]
		schemas[spec.Name] = spec.Schema
	}
	return !slices.ContainsFunc(old.versions, func(v *version) bool {
		now, there := schemas[v.spec.Name]
		return !there || now != v.spec.Schema
	})
}

// version returns the version of that name, or nil.
func (d *definition) version(name string) *version {
	i := slices.IndexFunc(d.versions, func(v *version) bool { return v.spec.Name == name })
	if i < 0 {
		return nil
	}
	return d.versions[i]
}

// storage returns the version that objects are written in; nil if the
// definition is broken.
func (d *definition) storage() *version { return d.version(d.crd.storageVersion()) }

// resources returns the resources of the served versions.
func (d *definition) resources() []*resource.Resource {
	var list []*resource.Resource
	for _, v := range d.versions {
		if v.resource != nil {
			list = append(list, v.resource)
		}
	}
	return list
}

// serves reports whether the definition already serves what crd and names demand.
func (d *definition) serves(crd *crdMeta, names apiextensionsv1.CustomResourceDefinitionNames) bool {
	return equality.Semantic.DeepEqual(d.crd.Spec, crd.Spec) && equality.Semantic.DeepEqual(d.names, names) &&
		(d.crd.DeletionTimestamp == nil) == (crd.DeletionTimestamp == nil)
}

// settle trusts objects that are written after the given revision: by then no
// server writes by an earlier schema. It reports whether any version needed it.
func (d *definition) settle(revision storage.Revision) bool {
	settled := false
	for _, v := range d.versions {
		settled = v.trustedAfter.CompareAndSwap(untrusted, int64(revision)) || settled
	}
	return settled
}

// unsettled reports whether settle has something to do.
func (d *definition) unsettled() bool {
	return slices.ContainsFunc(d.versions, func(v *version) bool { return v.trustedAfter.Load() == untrusted })
}

// close closes the idle connections to the webhook.
func (d *definition) close() {
	if h, ok := d.convert.(*hook); ok {
		h.close()
	}
}
