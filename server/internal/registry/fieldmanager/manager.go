package fieldmanager

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Manager keeps account of the writes to one endpoint. It is a small value, made
// for a write, and safe for concurrent use.
type Manager struct {
	// Resource is what the endpoint shows.
	Resource *resource.Resource
	// Subresource is "" for the objects themselves. A write to a subresource
	// owns fields of its own, and cannot change managedFields by hand.
	Subresource string
	// Version returns the resource that shows the same objects in another
	// version, or nil if none does. nil: there are no others.
	Version func(schema.GroupVersion) *resource.Resource
	// Ignored are fields that the endpoint does not write: a manager that sends
	// them does not own them.
	Ignored *fieldpath.Set
	// IgnoresWritten: some of Ignored beside the status may change through the endpoint.
	IgnoresWritten bool
	// Now is the time of the write, in whole seconds.
	Now time.Time
}

// unknownManager is the manager of a write that names none.
const unknownManager = "unknown"

// Update notes in obj, which is about to replace live, what of it manager
// changed. live nil means that obj is new. live is not changed, and may share
// memory with obj. What cannot be worked out leaves the managedFields as they
// were: that is never a reason to refuse a write. ctx bounds conversions by webhook.
func (m Manager) Update(ctx context.Context, live, obj resource.Object, manager string) {
	if manager == "" {
		manager = unknownManager
	}
	obj.GetObjectKind().SetGroupVersionKind(m.Resource.GroupVersionKind())
	if _, custom := obj.(*unstructured.Unstructured); !custom && !m.IgnoresWritten {
		if live == nil && m.createByType(obj, manager) || live != nil && m.updateByType(live, obj, manager) {
			return
		}
	}
	m.updateByLibrary(ctx, live, obj, manager)
}

// updateByLibrary is Update for every kind and every case.
func (m Manager) updateByLibrary(ctx context.Context, live, obj resource.Object, manager string) {
	if live == nil {
		live = empty(m.Resource)
	}
	before := live.GetManagedFields()
	dropLargeFields(obj, before)
	library, _, err := m.library(ctx)
	if err == nil {
		err = unreadable(func() error {
			_, err := library.Update(live, obj, manager)
			return err
		})
	}
	if err != nil {
		obj.SetManagedFields(before)
		return
	}
	m.stamp(obj, before, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: m.Resource.GroupVersion().String(), Subresource: m.Subresource,
	})
}

// Apply merges patch, which is in the endpoint's version and says its kind, into
// live, nil if there is no such object. It returns a new object with the
// managedFields that it has then, or a *apierrors.StatusError with a cause for
// each field that is another manager's, unless force takes those over. Neither
// argument is changed. ctx bounds conversions by webhook.
func (m Manager) Apply(ctx context.Context, live resource.Object, patch *unstructured.Unstructured, manager string, force bool) (resource.Object, error) {
	if live == nil {
		live = empty(m.Resource)
	}
	library, types, err := m.library(ctx)
	if err != nil {
		return nil, err
	}
	before := live.GetManagedFields()
	var merged runtime.Object
	err = unreadable(func() error {
		merged, err = library.Apply(live, patch, manager, force)
		return err
	})
	if err != nil && types.refused != nil {
		return nil, types.refused
	}
	if err != nil {
		return nil, err
	}
	obj, err := toGoType(merged, m.Resource)
	if err != nil {
		return nil, err
	}
	m.stamp(obj, before, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: m.Subresource,
	})
	return obj, nil
}

// library returns the library's manager, and what converts objects for it.
func (m Manager) library(ctx context.Context) (*managedfields.FieldManager, *everyVersion, error) {
	v := versions{ctx: ctx, own: m.Resource, other: m.Version}
	gv := m.Resource.GroupVersion()
	var ignored map[fieldpath.APIVersion]fieldpath.Filter
	if m.Ignored != nil {
		ignored = map[fieldpath.APIVersion]fieldpath.Filter{
			fieldpath.APIVersion(gv.String()): fieldpath.NewExcludeSetFilter(m.Ignored),
		}
	}
	// The hub is the endpoint's own version, from which each other is one step
	// away; the one for custom resources is right for kinds in two groups, too.
	types := &everyVersion{versions: v, found: map[*resource.Resource]managedfields.TypeConverter{}}
	manager, err := managedfields.NewDefaultCRDFieldManager(types, v, v, v, m.Resource.GroupVersionKind(), gv, m.Subresource, ignored)
	return manager, types, err
}

// unreadable calls the library, which panics on an object with raw JSON that it cannot read, as the number
// 1e400 in the data of a ControllerRevision. Then it returns an error that is the client's.
func unreadable(call func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("the fields of the object cannot be compared: %v", cause))
		}
	}()
	return call()
}

// stamp replaces the time that the library took from the system's clock, in the
// one entry in which it sets a time.
func (m Manager) stamp(obj resource.Object, before []metav1.ManagedFieldsEntry, self metav1.ManagedFieldsEntry) {
	entries := obj.GetManagedFields()
	i := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return sameManager(&e, &self) })
	if i < 0 || entries[i].Time == nil {
		return
	}
	j := slices.IndexFunc(before, func(e metav1.ManagedFieldsEntry) bool { return sameManager(&e, &self) })
	if j >= 0 && before[j].Time.Equal(entries[i].Time) {
		return
	}
	entries[i].Time = m.time()
	slices.SortStableFunc(entries, order)
	obj.SetManagedFields(entries)
}

func (m Manager) time() *metav1.Time {
	t := metav1.NewTime(m.Now.UTC())
	return &t
}

// sameManager says whether two entries are the sameManager manager's. One that applies has one
// entry for all versions.
func sameManager(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource &&
		(a.Operation == metav1.ManagedFieldsOperationApply || a.APIVersion == b.APIVersion)
}

// order is the order of the entries of an object.
func order(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(
		cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(seconds(a.Time), seconds(b.Time)),
		cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Subresource, b.Subresource),
	)
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// EqualButTimes says whether two lists of entries differ in nothing but when
// they were written.
func EqualButTimes(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	var first map[managerKey]*metav1.ManagedFieldsEntry // of each manager, if they are not in the same order
	for i := range a {
		e := &b[i]
		if !sameManager(e, &a[i]) {
			if first == nil {
				first = firstEntries(b)
			}
			e = first[managerKeyOf(&a[i])]
		}
		if e == nil || a[i].APIVersion != e.APIVersion || a[i].FieldsV1.GetRawString() != e.FieldsV1.GetRawString() {
			return false
		}
	}
	return true
}

func firstEntries(entries []metav1.ManagedFieldsEntry) map[managerKey]*metav1.ManagedFieldsEntry {
	first := make(map[managerKey]*metav1.ManagedFieldsEntry, len(entries))
	for i := range slices.Backward(entries) {
		first[managerKeyOf(&entries[i])] = &entries[i]
	}
	return first
}

// managerKey is the same for entries of the same manager, as sameManager has it.
type managerKey struct {
	manager, subresource, version string
	operation                     metav1.ManagedFieldsOperationType
}

func managerKeyOf(e *metav1.ManagedFieldsEntry) managerKey {
	key := managerKey{manager: e.Manager, subresource: e.Subresource, operation: e.Operation}
	if e.Operation != metav1.ManagedFieldsOperationApply {
		key.version = e.APIVersion
	}
	return key
}
