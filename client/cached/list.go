package cached

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
)

// List reads the objects that opts selects, in no particular order.
//
// Label selectors are evaluated here; an index made by [LabelIndexers] makes that
// fast. Field selectors may name metadata.name, metadata.namespace, and fields
// with an index of that name, which [FieldIndexers] makes:
//
//	err := pods.AddIndexers(cached.FieldIndexers("spec.nodeName", func(pod *corev1.Pod) string { return pod.Spec.NodeName }))
//
// For other fields there is an error: searching all objects for them would hide
// how much that costs.
//
// With opts.ResourceVersion, List waits until the cache is not older. A list from
// a cache is complete, whatever opts.Limit says. Lists at an exact
// resourceVersion, and the next pages of a list, come from the server.
func (r Resource[T]) List(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error) {
	if opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact || opts.Continue != "" || r.isMisscoped(false) {
		return r.endpoint.List(ctx, opts)
	}
	q, err := parse(r.namespace, opts)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.GroupVersionResource().Resource, err)
	}
	sources, err := sourcesToRead(r)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		left, ok := s.hasAllOf(q)
		if !ok || !s.hasNamespace(q.namespace) {
			continue
		}
		if list, err := r.listFrom(ctx, s, left, opts.ResourceVersion); err == nil || !s.hasStopped() {
			return list, err
		}
	}
	return r.endpoint.List(ctx, opts)
}

// listFrom lists from a cache. Of the query, it is what the cache does not select
// already.
func (r Resource[T]) listFrom(ctx context.Context, s *source[T], q query, version string) (*client.List[T], error) {
	if err := s.wait(ctx, q.namespace, version); err != nil {
		return nil, err
	}
	list := &client.List[T]{Items: []T{}}
	list.ResourceVersion = s.informer.LastSyncResourceVersion() // the objects are of this one or a later one
	lister := s.informer.Lister()
	m := matcher[T]{query: q, indexers: lister.Indexers()}
	if field, ok := m.unindexed(); ok {
		return nil, fmt.Errorf("list %s from the cache: there is no index of the field %q: register it with AddIndexers(cached.FieldIndexers(%q, ...)), or list with Uncached",
			r.GroupVersionResource().Resource, field, field)
	}
	for _, obj := range m.candidates(lister) {
		if m.matches(obj) && !s.isLeftBehind(obj) {
			list.Items = append(list.Items, r.own(obj))
		}
	}
	return list, nil
}

// query is what a list selects.
type query struct {
	namespace string // "": all
	labels    labels.Requirements
	fields    fields.Requirements
}

func parse(namespace string, opts metav1.ListOptions) (query, error) {
	q := query{namespace: namespace}
	labelSelector, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return q, fmt.Errorf("label selector: %w", err)
	}
	q.labels, _ = labelSelector.Requirements()
	fieldSelector, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return q, fmt.Errorf("field selector: %w", err)
	}
	q.fields = fieldSelector.Requirements()
	if value, ok := q.field(namespaceField); ok && namespace == "" {
		q.namespace = value
	}
	return q, nil
}

// The fields that need no index.
const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// field returns the value that a field must have.
func (q query) field(name string) (string, bool) {
	for _, requirement := range q.fields {
		if requirement.Field == name && requirement.Operator != selection.NotEquals {
			return requirement.Value, true
		}
	}
	return "", false
}

// matcher evaluates a query on the objects of a cache.
type matcher[T client.Object] struct {
	query
	indexers cache.Indexers[T]
}

// unindexed returns a field of the query that cannot be evaluated.
func (m matcher[T]) unindexed() (string, bool) {
	for _, requirement := range m.fields {
		if m.indexers[requirement.Field] == nil && requirement.Field != nameField && requirement.Field != namespaceField {
			return requirement.Field, true
		}
	}
	return "", false
}

// candidates returns the objects among which those are that match: by name, by the
// first index that the query can use, or those of the namespace.
func (m matcher[T]) candidates(lister informer.Lister[T]) []T {
	if name, ok := m.field(nameField); ok {
		if obj, ok := lister.Get(m.namespace, name); ok {
			return []T{obj}
		}
		if m.namespace != "" {
			return nil
		}
	}
	for _, requirement := range m.fields {
		if requirement.Operator == selection.NotEquals || m.indexers[requirement.Field] == nil {
			continue
		}
		if found, err := lister.ByIndex(requirement.Field, requirement.Value); err == nil {
			return found
		}
	}
	for _, requirement := range m.labels {
		name := labelIndex(requirement.Key())
		if op := requirement.Operator(); m.indexers[name] == nil || op != selection.Equals && op != selection.DoubleEquals && op != selection.In {
			continue
		}
		if found, err := lister.ByIndexAny(name, requirement.Values().UnsortedList()...); err == nil {
			return found
		}
	}
	return lister.List(m.namespace, nil)
}

func (m matcher[T]) matches(obj T) bool {
	if m.namespace != "" && obj.GetNamespace() != m.namespace {
		return false
	}
	for _, requirement := range m.labels {
		if !requirement.Matches(labels.Set(obj.GetLabels())) {
			return false
		}
	}
	for _, requirement := range m.fields {
		if slices.Contains(m.values(obj, requirement.Field), requirement.Value) == (requirement.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// values returns what the object has in a field. An object for which the index
// function fails has nothing, as in the index.
func (m matcher[T]) values(obj T, field string) []string {
	switch {
	case m.indexers[field] != nil:
		values, _ := m.indexers[field](obj)
		return values
	case field == nameField:
		return []string{obj.GetName()}
	default:
		return []string{obj.GetNamespace()}
	}
}
