package resource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Table is the set of resources that a server offers. Built-in kinds are in
// it from the start, custom ones come and go. Readers never block: every
// change publishes a new view, and what a reader has looked up stays valid
// for as long as it holds it. All methods are safe for concurrent use.
type Table struct {
	writing sync.Mutex // held while a new view is made, never by readers
	view    atomic.Pointer[tableView]
}

// Group is one API group as discovery presents it.
type Group struct {
	Name string // "" is core
	// Versions are the served versions, the preferred one first.
	Versions []string
}

// tableView is one immutable state of a Table.
type tableView struct {
	all     []*Resource
	byName  map[schema.GroupVersionResource]*Resource
	byKind  map[schema.GroupVersionKind]*Resource
	byStore map[string]*Resource // stored resources by StorePrefix
	groups  []Group
	// replaced is closed when another view has taken the place of this one.
	replaced chan struct{}
}

// NewTable returns a table of the given resources. It fails, naming the
// offender, if two of them share a name, a kind or a place in the store, or
// if one is incomplete.
func NewTable(resources ...*Resource) (*Table, error) {
	t := &Table{}
	view, err := newTableView(resources)
	if err != nil {
		return nil, err
	}
	t.view.Store(view)
	return t, nil
}

// Add offers more resources. Either all of them are added or, with an error,
// none.
func (t *Table) Add(resources ...*Resource) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	return t.publish(slices.Concat(t.view.Load().all, resources))
}

// Remove stops offering the named resources; names that are not in the table
// are ignored. It fails, and changes nothing, if another resource is shown
// over one of them.
func (t *Table) Remove(names ...schema.GroupVersionResource) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	return t.publish(t.without(names))
}

// Replace removes and adds in one step, so that no reader sees the table
// between the two. A changed custom resource definition needs it.
func (t *Table) Replace(remove []schema.GroupVersionResource, add ...*Resource) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	return t.publish(append(t.without(remove), add...))
}

// Lookup returns the resource by its name in URLs, or nil.
func (t *Table) Lookup(group, version, plural string) *Resource {
	return t.view.Load().byName[schema.GroupVersionResource{Group: group, Version: version, Resource: plural}]
}

// ByKind returns the resource of a kind, or nil.
func (t *Table) ByKind(gvk schema.GroupVersionKind) *Resource {
	return t.view.Load().byKind[gvk]
}

// All returns every resource: core first, then groups by name, preferred
// versions first, then by plural. The slice is shared and must not be
// modified.
func (t *Table) All() []*Resource {
	return t.view.Load().all
}

// Changed returns a channel that is closed when All returns something else than it does now.
// Who wants to miss nothing calls it before All.
func (t *Table) Changed() <-chan struct{} {
	return t.view.Load().replaced
}

// Groups returns the groups in the order of All. The slice is shared and must
// not be modified.
func (t *Table) Groups() []Group {
	return t.view.Load().groups
}

// without returns the current resources except the named ones. The caller
// holds writing.
func (t *Table) without(names []schema.GroupVersionResource) []*Resource {
	gone := make(map[schema.GroupVersionResource]struct{}, len(names)) // a definition may have thousands of versions
	for _, name := range names {
		gone[name] = struct{}{}
	}
	rest := make([]*Resource, 0, len(t.view.Load().all))
	for _, r := range t.view.Load().all {
		if _, is := gone[r.GroupVersionResource()]; !is {
			rest = append(rest, r)
		}
	}
	return rest
}

// publish makes resources the current view. The caller holds writing.
func (t *Table) publish(resources []*Resource) error {
	view, err := newTableView(resources)
	if err != nil {
		return err
	}
	close(t.view.Swap(view).replaced)
	return nil
}

func newTableView(resources []*Resource) (*tableView, error) {
	v := &tableView{
		replaced: make(chan struct{}),
		all:      slices.Clone(resources),
		byName:   make(map[schema.GroupVersionResource]*Resource, len(resources)),
		byKind:   make(map[schema.GroupVersionKind]*Resource, len(resources)),
		byStore:  make(map[string]*Resource, len(resources)),
	}
	for _, r := range v.all {
		if err := v.index(r); err != nil {
			return nil, err
		}
	}
	for _, r := range v.all {
		if s := r.Storage; s != nil && !s.Mixed && v.byName[s.GroupVersionResource()] != s {
			return nil, fmt.Errorf("resource %s is shown over %s, which is not in the table", r.GroupVersionResource(), s.GroupVersionResource())
		}
	}
	slices.SortStableFunc(v.all, compareResources)
	v.collectGroups()
	return v, nil
}

// index enters r in the maps.
func (v *tableView) index(r *Resource) error {
	if err := r.complete(); err != nil {
		return err
	}
	name, kind := r.GroupVersionResource(), r.GroupVersionKind()
	if v.byName[name] != nil {
		return fmt.Errorf("resource %s is in the table twice", name)
	}
	if other := v.byKind[kind]; other != nil {
		return fmt.Errorf("resources %s and %s share the kind %s", other.GroupVersionResource(), name, kind)
	}
	v.byName[name], v.byKind[kind] = r, r
	if r.Storage != nil {
		return nil
	}
	if other := v.byStore[r.StorePrefix]; other != nil {
		return fmt.Errorf("resources %s and %s share the store prefix %s", other.GroupVersionResource(), name, r.StorePrefix)
	}
	v.byStore[r.StorePrefix] = r
	return nil
}

// collectGroups derives the groups from the sorted list.
func (v *tableView) collectGroups() {
	for _, r := range v.all {
		last := len(v.groups) - 1
		if last < 0 || v.groups[last].Name != r.Group {
			v.groups = append(v.groups, Group{Name: r.Group, Versions: []string{r.Version}})
			continue
		}
		if versions := v.groups[last].Versions; versions[len(versions)-1] != r.Version { // they are in order
			v.groups[last].Versions = append(versions, r.Version)
		}
	}
}

// compareResources orders by group, then by version as Kubernetes prefers
// them (v2 before v1 before v1beta1), then by plural.
func compareResources(a, b *Resource) int {
	if c := strings.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	if c := version.CompareKubeAwareVersionStrings(b.Version, a.Version); c != 0 {
		return c
	}
	return strings.Compare(a.Plural, b.Plural)
}

// complete reports what a resource lacks to be served.
func (r *Resource) complete() error {
	switch {
	case r == nil:
		return errors.New("a nil resource cannot be served")
	case r.Version == "" || r.Kind == "" || r.ListKind == "" || r.Plural == "" || r.Singular == "":
		return fmt.Errorf("resource %s: version, kind, list kind, plural and singular must all be set", r.GroupVersionResource())
	case r.New == nil || r.NewList == nil:
		return fmt.Errorf("resource %s: New and NewList must be set", r.GroupVersionResource())
	case r.Storage == nil && !(strings.HasPrefix(r.StorePrefix, "/registry/") && strings.HasSuffix(r.StorePrefix, "/")):
		return fmt.Errorf("resource %s: the store prefix %q must begin with /registry/ and end with a slash", r.GroupVersionResource(), r.StorePrefix)
	case r.Storage != nil && (r.FromStorage == nil || r.ToStorage == nil):
		return fmt.Errorf("resource %s: it is shown over another one, so FromStorage and ToStorage must be set", r.GroupVersionResource())
	case r.Storage != nil && r.Storage.Storage != nil:
		return fmt.Errorf("resource %s: it may only be shown over a stored resource", r.GroupVersionResource())
	}
	return r.fieldsResolve()
}

// fieldsResolve checks that the fields of a shown resource exist in the
// stored one.
func (r *Resource) fieldsResolve() error {
	for _, f := range r.Fields {
		if _, ok := r.FieldIndex(f.Name); !ok {
			return fmt.Errorf("resource %s: field %s has no counterpart in the stored resource", r.GroupVersionResource(), f.Name)
		}
	}
	return nil
}
