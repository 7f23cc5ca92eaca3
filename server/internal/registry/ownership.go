package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/registry/fieldmanager"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// trackOwnership brings the managedFields of w.object up to date; old is nil for
// a new object.
func (w *pendingWrite) trackOwnership(ctx context.Context, old resource.Object) {
	switch {
	case w.endpoint.Ownership == OwnershipTracked:
		w.registry.FieldManager(w.endpoint.Subresource).Update(ctx, old, w.object, w.manager)
	case w.endpoint.Ownership == OwnershipKept && old != nil:
		w.object.SetManagedFields(old.GetManagedFields())
	}
}

// FieldManager returns the manager that tracks the owners of the fields that
// writes through an endpoint change.
func (r Registry) FieldManager(subresource string) fieldmanager.Manager {
	return fieldmanager.Manager{
		Resource: r.res, Subresource: subresource, Now: r.set.Now().Time,
		Version: r.version, Ignored: r.ignoredFields(subresource), IgnoresWritten: r.res.Strategy.Unowned[subresource] != nil,
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

var statusFields = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))

// besideStatus has the fields that the status endpoint leaves as they are, by the metadata
// that the kind keeps.
var besideStatus = func() (sets [resource.AllMetadata + 1]*fieldpath.Set) {
	for keeps := range sets {
		set := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		for _, name := range resource.Metadata(keeps).Names() {
			set.Insert(fieldpath.MakePathOrDie("metadata", name))
		}
		sets[keeps] = set
	}
	sets[resource.AllMetadata].Insert(fieldpath.MakePathOrDie("metadata"))
	return sets
}()

// ignoredFields returns the fields that a write to the endpoint leaves as they
// are.
func (r Registry) ignoredFields(subresource string) *fieldpath.Set {
	switch {
	case r.res.Strategy.Unowned[subresource] != nil:
		return r.res.Strategy.Unowned[subresource]
	case subresource == "" && r.res.Status:
		return statusFields
	case subresource == "status":
		return besideStatus[r.res.Strategy.StatusKeeps]
	}
	return nil
}

// equalIgnoringTimestamps reports whether obj differs from old only in the times
// of its managedFields, so that there is nothing to write.
func equalIgnoringTimestamps(obj, old resource.Object) bool {
	managed := obj.GetManagedFields()
	if !fieldmanager.EqualButTimes(managed, old.GetManagedFields()) {
		return false
	}
	obj.SetManagedFields(old.GetManagedFields())
	equal := equality.Semantic.DeepEqual(obj, old)
	obj.SetManagedFields(managed)
	return equal
}

// ServerManager is the field manager of what the server itself writes.
const ServerManager = "levelwire"

// ServerWrites are the options of what the server itself writes.
var ServerWrites = WriteOptions{FieldManager: ServerManager, Admitted: true}
