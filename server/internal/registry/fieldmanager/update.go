package fieldmanager

import (
	"bytes"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// maxUpdaters is how many entries of updates an object may have before the
// oldest ones are merged.
const maxUpdaters = 10

const fieldsType = "FieldsV1"

// statusPath is what the main endpoint of most kinds ignores.
var statusPath = fieldpath.MakePathOrDie("status")

// createByType is Update for a new object of a Go type. It returns false, and
// has changed nothing, if the type says too little.
func (m Manager) createByType(obj resource.Object, manager string) bool {
	v := reflect.ValueOf(obj).Elem()
	s := typeInfoOf(v.Type())
	if s.kind != structKind || obj.GetManagedFields() != nil {
		return false
	}
	w := newFieldsWriter()
	d := m.differ(w, w.path)
	defer func() { w.release(d.path) }()
	d.objects(s, reflect.Zero(v.Type()), v)
	if d.unsure {
		return false
	}
	if fields := w.finish(); fields != nil {
		entry := m.entry(manager)
		entry.Time, entry.FieldsV1 = m.time(), &metav1.FieldsV1{}
		entry.FieldsV1.SetRawBytes(fields)
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	}
	return true
}

// differ uses path, which is empty.
func (m Manager) differ(to recorder, path []step) differ {
	return differ{to: to, path: path, ignoreStatus: m.Ignored != nil && m.Ignored.Has(statusPath)}
}

// entry is that of an update of the endpoint, without its fields.
func (m Manager) entry(manager string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: m.Resource.GroupVersion().String(),
		FieldsType: fieldsType, Subresource: m.Subresource,
	}
}

// updateByType is Update for a change of an object of a Go type. It returns
// false, and has changed nothing, in the cases that are left to the library:
// where the type says too little, where a client sent other managedFields than
// there are, and where entries are of another version or too many.
func (m Manager) updateByType(live, obj resource.Object, manager string) bool {
	before := live.GetManagedFields()
	if sent := obj.GetManagedFields(); m.Subresource == "" && sent != nil && !equalEntries(sent, before) {
		return false
	}
	if len(before) == 0 {
		// An object that had no managedFields from the start gets none until a
		// client applies it.
		obj.SetManagedFields(nil)
		return true
	}
	var c changes
	d := m.differ(&c, make([]step, 0, 16))
	v := reflect.ValueOf(obj).Elem()
	s := typeInfoOf(v.Type())
	if s.kind != structKind {
		return false
	}
	d.objects(s, reflect.ValueOf(live).Elem(), v)
	if d.unsure {
		return false
	}
	if c.none() {
		obj.SetManagedFields(before)
		return true
	}
	after, ok := m.reassign(before, &c, manager)
	if ok {
		obj.SetManagedFields(after)
	}
	return ok
}

// equalEntries compares entries as clients send them back.
func equalEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		return sameManager(&x, &y) && x.APIVersion == y.APIVersion && x.FieldsType == y.FieldsType &&
			seconds(x.Time) == seconds(y.Time) && x.FieldsV1.GetRawString() == y.FieldsV1.GetRawString()
	})
}

// reassign returns the entries with the changed fields in manager's. A field
// that manager set leaves all other entries, and a field that is gone leaves
// every entry. Entries that the changes do not touch are kept as they are.
func (m Manager) reassign(before []metav1.ManagedFieldsEntry, c *changes, manager string) ([]metav1.ManagedFieldsEntry, bool) {
	self := m.entry(manager)
	after := make([]metav1.ManagedFieldsEntry, 0, len(before)+1)
	updaters, found := 0, false
	for _, e := range before {
		if e.APIVersion != self.APIVersion || e.FieldsType != fieldsType {
			return nil, false
		}
		isSelf := sameManager(&e, &self)
		if isSelf && c.set != nil {
			found = true
			e.Time = m.time()
		}
		fields, ok := c.in(e.FieldsV1, isSelf)
		if !ok {
			return nil, false
		}
		if fields == nil {
			continue
		}
		e.FieldsV1 = fields
		after = append(after, e)
		if e.Operation == metav1.ManagedFieldsOperationUpdate {
			updaters++
		}
	}
	if c.set != nil && !found {
		fields, ok := encode(c.set)
		if !ok {
			return nil, false
		}
		self.Time, self.FieldsV1 = m.time(), fields
		after = append(after, self)
		updaters++
	}
	slices.SortStableFunc(after, order)
	return after, updaters <= maxUpdaters
}

// in returns an entry's fields after the changes, nil if there are none left.
func (c *changes) in(fields *metav1.FieldsV1, self bool) (*metav1.FieldsV1, bool) {
	raw := fields.GetRawBytes()
	if !c.touches(raw) && (!self || c.set == nil) {
		return fields, true
	}
	set, err := decoded.of(raw)
	if err != nil {
		return nil, false
	}
	now := set
	if c.gone != nil {
		now = now.Difference(c.gone)
	}
	switch {
	case c.set != nil && self:
		now = now.Union(c.set)
	case c.set != nil:
		now = now.Difference(c.set)
	}
	switch {
	case now.Equals(set):
		return fields, true
	case now.Empty():
		return nil, true
	}
	return encode(now)
}

// touches is false if an entry surely has none of the changed fields: it has
// nothing in the parts of the object that changed.
func (c *changes) touches(raw []byte) bool {
	return touches(c.set, raw) || touches(c.gone, raw)
}

func touches(set *fieldpath.Set, raw []byte) bool {
	if set == nil {
		return false
	}
	found := false
	top := func(e fieldpath.PathElement) {
		if e.FieldName != nil && bytes.Contains(raw, []byte(`"f:`+*e.FieldName+`"`)) {
			found = true
		}
	}
	set.Members.Iterate(top)
	for path := range set.Children.All() {
		top(path)
	}
	return found
}

func encode(set *fieldpath.Set) (*metav1.FieldsV1, bool) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, false
	}
	return metav1.NewFieldsV1(string(raw)), true
}
