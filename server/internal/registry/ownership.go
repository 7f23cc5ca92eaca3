package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/registry/fieldmanager"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// ownershipRule is what a write does to metadata.managedFields.
type ownershipRule uint8

const (
	// ownersTracked: who writes owns what the write changes.
	ownersTracked ownershipRule = iota
	// ownersDecided: the new object says already who owns what.
	ownersDecided
	// ownersKept: what the write changes is nobody's.
	ownersKept
)

// ownership is whose the fields are that a write changes.
type ownership struct {
	rule        ownershipRule
	manager     string
	subresource string
}

// track brings obj's managedFields up to date; old is nil for a new object.
func (o ownership) track(ctx context.Context, r Registry, old, obj resource.Object) {
	switch {
	case o.rule == ownersTracked:
		r.fieldManager(o.subresource).Update(ctx, old, obj, o.manager)
	case o.rule == ownersKept && old != nil:
		obj.SetManagedFields(old.GetManagedFields())
	}
}

// fieldManager returns who keeps account of the endpoint's writes.
func (r Registry) fieldManager(subresource string) fieldmanager.Manager {
	return fieldmanager.Manager{
		Resource: r.res, Subresource: subresource, Now: r.set.now().Time,
		Version: r.version, Ignored: r.ignoredFields(subresource),
	}
}

// version returns the resource that shows the registry's objects in another
// version or group, or nil.
func (r Registry) version(gv schema.GroupVersion) *resource.Resource {
	for _, res := range r.set.config.Resources.All() {
		if res.GroupVersion() == gv && res.Stored().StorePrefix == r.stored.StorePrefix {
			return res
		}
	}
	return nil
}

var (
	statusFields = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	// What the status endpoint leaves alone: of custom resources, all metadata.
	besideStatus = fieldpath.NewSet(
		fieldpath.MakePathOrDie("spec"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
	)
	besideCustomStatus = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
)

// ignoredFields are those that a write to the endpoint leaves as they are.
func (r Registry) ignoredFields(subresource string) *fieldpath.Set {
	switch {
	case subresource == "" && r.res.Status:
		return statusFields
	case subresource == "status" && r.res.TypeConverter != nil:
		return besideCustomStatus
	case subresource == "status":
		return besideStatus
	}
	return nil
}

// sameButTimes says whether obj is old, but for when its fields were written:
// then there is nothing to write.
func sameButTimes(obj, old resource.Object) bool {
	managed := obj.GetManagedFields()
	if !fieldmanager.EqualButTimes(managed, old.GetManagedFields()) {
		return false
	}
	obj.SetManagedFields(old.GetManagedFields())
	equal := equality.Semantic.DeepEqual(obj, old)
	obj.SetManagedFields(managed)
	return equal
}

// serverManager is the manager of what the server itself writes.
const serverManager = "levelwire"

var serverWrites = WriteOptions{FieldManager: serverManager}
