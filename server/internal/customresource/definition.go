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

// definition is one state of a CustomResourceDefinition in the form it is
// served by. It is immutable; a change makes another one, which shares what has
// not changed.
type definition struct {
	head     *head
	names    apiextensionsv1.CustomResourceDefinitionNames // the accepted ones
	stored   *resource.Resource                            // the same for as long as the definition exists
	versions []*version
	convert  converter
}

// generations numbers what objects look like; see resource.Resource.Generation.
var generations atomic.Uint64

// define makes the definition that takes the place of old, which is nil for a
// new one. hooks makes the callers of conversion webhooks.
func define(h *head, names apiextensionsv1.CustomResourceDefinitionNames, old *definition, hooks *Webhooks) *definition {
	d := &definition{head: h, names: names}
	if old != nil {
		d.stored = old.stored
	} else {
		d.stored = storedResource(h, names)
	}
	d.convert = converterOf(h, old, hooks)
	same := d.readsAs(old)
	for i := range h.Spec.Versions {
		d.versions = append(d.versions, d.newVersion(&h.Spec.Versions[i], old, same))
	}
	for _, v := range d.versions {
		if v.head.Served {
			d.stored.Select(v.fields()...)
			v.resource = d.resourceOf(v)
		}
	}
	return d
}

// storedResource is what the cache holds: objects of all versions.
func storedResource(h *head, names apiextensionsv1.CustomResourceDefinitionNames) *resource.Resource {
	return &resource.Resource{
		Group: h.Spec.Group, Version: h.storageVersion(), Kind: names.Kind, ListKind: names.ListKind,
		Plural: h.Spec.Names.Plural, Singular: names.Singular, Namespaced: h.Spec.Scope == apiextensionsv1.NamespaceScoped,
		StorePrefix: "/registry/" + h.Spec.Group + "/" + h.Spec.Names.Plural + "/",
		Mixed:       true,
		New:         func() resource.Object { return &unstructured.Unstructured{} },
		NewList:     func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
}

// newVersion takes over from old what the change does not touch. same is what
// readsAs says of it.
func (d *definition) newVersion(h *headVersion, old *definition, same bool) *version {
	v := &version{
		head: h, kind: schema.GroupVersionKind{Group: d.head.Spec.Group, Version: h.Name, Kind: d.names.Kind},
		generation: generations.Add(1),
	}
	var before *version
	if old != nil {
		before = old.version(h.Name)
	}
	if before == nil || before.head.Schema != h.Schema || old.head.Spec.PreserveUnknownFields != d.head.Spec.PreserveUnknownFields {
		v.schema = &compiled{source: d.head.source, version: h.Name, preserve: d.head.Spec.PreserveUnknownFields}
		v.sure = new(atomic.Int64)
		if old == nil {
			v.trustFrom(d.head.revision)
		} else {
			v.trustFrom(notYet)
		}
		return v
	}
	v.schema, v.sure = before.schema, before.sure
	if same && equality.Semantic.DeepEqual(before.head.AdditionalPrinterColumns, h.AdditionalPrinterColumns) {
		v.generation = before.generation
	}
	return v
}

// readsAs says that stored objects are read as by old, columns aside: all its
// versions are still there with their schemas, and conversion is the same. It
// is asked once per change, as a definition may have thousands of versions.
func (d *definition) readsAs(old *definition) bool {
	if old == nil || !equality.Semantic.DeepEqual(old.head.Spec.Conversion, d.head.Spec.Conversion) {
		return false
	}
	schemas := make(map[string]digest, len(d.head.Spec.Versions))
	for i := range d.head.Spec.Versions {
		h := &d.head.Spec.Versions[i]
		schemas[h.Name] = h.Schema
	}
	return !slices.ContainsFunc(old.versions, func(v *version) bool {
		now, there := schemas[v.head.Name]
		return !there || now != v.head.Schema
	})
}

// version returns the version of that name, or nil.
func (d *definition) version(name string) *version {
	i := slices.IndexFunc(d.versions, func(v *version) bool { return v.head.Name == name })
	if i < 0 {
		return nil
	}
	return d.versions[i]
}

// storage returns the version that objects are written in; nil if the
// definition is broken.
func (d *definition) storage() *version { return d.version(d.head.storageVersion()) }

// resources returns what is served.
func (d *definition) resources() []*resource.Resource {
	var list []*resource.Resource
	for _, v := range d.versions {
		if v.resource != nil {
			list = append(list, v.resource)
		}
	}
	return list
}

// sameAs says that the definition serves what h and names want.
func (d *definition) sameAs(h *head, names apiextensionsv1.CustomResourceDefinitionNames) bool {
	return equality.Semantic.DeepEqual(d.head.Spec, h.Spec) && equality.Semantic.DeepEqual(d.names, names) &&
		(d.head.DeletionTimestamp == nil) == (h.DeletionTimestamp == nil)
}

// settle trusts what was written after the given revision: by then nobody
// writes by the schemas before. It reports whether any version needed it.
func (d *definition) settle(revision storage.Revision) bool {
	settled := false
	for _, v := range d.versions {
		settled = v.sure.CompareAndSwap(notYet, int64(revision)) || settled
	}
	return settled
}

// unsettled says that settle has something to do.
func (d *definition) unsettled() bool {
	return slices.ContainsFunc(d.versions, func(v *version) bool { return v.sure.Load() == notYet })
}

// close drops the connections to the webhook.
func (d *definition) close() {
	if h, ok := d.convert.(*hook); ok {
		h.close()
	}
}
