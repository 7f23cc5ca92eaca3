package cached

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// source is an informer with what it has.
type source[T client.Object] struct {
	informer   *informer.SharedInformer[T]
	namespaces []string // nil: all
	firstUse   bool     // made by CacheOnFirstUse
	labels     labels.Requirements
	fields     fields.Requirements

	mu      sync.Mutex
	written map[string]string // the resourceVersions that reads wait for, by scopeOf
	// outside are the resourceVersions in which the program has written objects that
	// the informer does not select: an older state in the cache has been left behind.
	outside map[types.NamespacedName]string
}

func newSource[T client.Object](inf *informer.SharedInformer[T]) (*source[T], error) {
	if inf.GroupVersionResource().Empty() {
		return nil, fmt.Errorf("informer %s was not made by a Factory: what it has is not known", inf.Name())
	}
	opts := inf.ListOptions()
	if opts.Modifier.Modify != nil {
		return nil, fmt.Errorf("informer %s has a Modifier: what it has is not known", inf.Name())
	}
	s := &source[T]{informer: inf, namespaces: opts.Namespaces}
	if opts.Namespace != "" {
		s.namespaces = []string{opts.Namespace}
	}
	labelSelector, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, err
	}
	s.labels, _ = labelSelector.Requirements()
	fieldSelector, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return nil, err
	}
	s.fields = fieldSelector.Requirements()
	return s, nil
}

// isDone reports whether the informer has stopped or failed. What its cache shows then
// stays as it is for ever.
func (s *source[T]) isDone() bool {
	select {
	case <-s.informer.Done():
		return true
	default:
		return false
	}
}

// hasStopped reports whether the informer has stopped without a failure: the server is to
// be asked in its place.
func (s *source[T]) hasStopped() bool { return s.isDone() && s.informer.Err() == nil }

// hasNamespace reports whether the informer looks at a namespace; "" is all.
func (s *source[T]) hasNamespace(namespace string) bool {
	return s.namespaces == nil || slices.Contains(s.namespaces, namespace)
}

// isWhole reports whether the informer has every object of its namespaces.
func (s *source[T]) isWhole() bool { return len(s.labels) == 0 && len(s.fields) == 0 }

// hasAllOf reports whether the informer has everything that a query selects: each
// of its own requirements is one of the query's, too, or follows from one that is about the
// same label. left are the query's others, which must be looked at.
func (s *source[T]) hasAllOf(q query) (left query, ok bool) {
	left = q
	left.labels = without(q.labels, s.labels, func(a, b labels.Requirement) bool { return a.Equal(b) })
	left.fields = without(q.fields, s.fields, func(a, b fields.Requirement) bool { return a == b })
	for _, own := range s.labels {
		if !slices.ContainsFunc(q.labels, func(asked labels.Requirement) bool { return implies(asked, own) }) {
			return left, false
		}
	}
	return left, len(q.fields)-len(left.fields) >= len(s.fields)
}

// implies reports whether whatever matches a requirement matches the other one. It may
// miss that of comparisons of numbers.
func implies(asked, own labels.Requirement) bool {
	if asked.Key() != own.Key() {
		return false
	}
	switch asked.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return !slices.ContainsFunc(asked.Values().UnsortedList(), func(value string) bool {
			return !own.Matches(labels.Set{own.Key(): value})
		})
	case selection.DoesNotExist:
		return own.Matches(labels.Set{})
	case selection.NotIn, selection.NotEquals:
		excludes := own.Operator() == selection.NotIn || own.Operator() == selection.NotEquals
		return excludes && asked.Values().IsSuperset(own.Values())
	default: // the label exists
		return own.Operator() == selection.Exists || asked.Equal(own)
	}
}

// without returns all but those that are in others.
func without[R any](all, others []R, equal func(a, b R) bool) []R {
	var left []R
	for _, one := range all {
		if !slices.ContainsFunc(others, func(other R) bool { return equal(one, other) }) {
			left = append(left, one)
		}
	}
	return left
}

// scopeOf returns what a read of a namespace waits for: the namespace if the informer is
// one of namespaces, which each have a watch, or "" if one watch has everything.
func (s *source[T]) scopeOf(namespace string) string {
	if s.namespaces == nil {
		return ""
	}
	return namespace
}

// waitForList waits until the cache has synced. Of an informer that a read has made, the program
// may not know that its user may not list the kind, or that the server does not serve it:
// reads return that, and do not wait.
func (s *source[T]) waitForList(ctx context.Context) error {
	if !s.firstUse {
		return s.informer.WaitForResourceVersion(ctx, "")
	}
	err := s.informer.WaitForFirstList(ctx)
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return fmt.Errorf("caching on first use: %w (or have cached.Options.Uncached name it, to read it from the server)", err)
	}
	return err
}

// wait waits until the cache has synced, and shows version and what was written in the
// namespace. It returns an error if the informer stops meanwhile: see hasStopped.
func (s *source[T]) wait(ctx context.Context, namespace, version string) error {
	if s.isDone() {
		return errors.Join(informer.ErrStopped, s.informer.Err())
	}
	if err := s.waitForList(ctx); err != nil {
		return err
	}
	scope := s.scopeOf(namespace)
	s.mu.Lock()
	written := s.written[scope]
	s.mu.Unlock()
	if written != "" {
		if err := s.informer.WaitForResourceVersionIn(ctx, scope, written); err != nil {
			return err
		}
		s.mu.Lock()
		if s.written[scope] == written {
			delete(s.written, scope) // the cache does not go back
		}
		s.mu.Unlock()
	}
	if version == "" || version == "0" {
		return nil
	}
	return s.informer.WaitForResourceVersionIn(ctx, scope, version)
}

// record has later reads show a write. They wait for an object that the informer
// selects. For any other there may never be an event to wait for; what the cache still
// has of it does not count.
func (s *source[T]) record(obj T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := obj.GetResourceVersion()
	if !s.maySelect(obj) {
		reached := s.informer.LastSyncResourceVersion()
		maps.DeleteFunc(s.outside, func(_ types.NamespacedName, written string) bool { return !isOlder(reached, written) })
		if s.outside == nil {
			s.outside = map[types.NamespacedName]string{}
		}
		if known, ok := s.outside[keyOf(obj)]; !ok || isOlder(known, version) {
			s.outside[keyOf(obj)] = version
		}
		return
	}
	scope := s.scopeOf(obj.GetNamespace())
	if known, ok := s.written[scope]; !ok || isOlder(known, version) {
		if s.written == nil {
			s.written = map[string]string{}
		}
		s.written[scope] = version
	}
}

// maySelect reports whether the informer selects an object. It cannot tell from
// fields other than the name and the namespace, and says that it does.
func (s *source[T]) maySelect(obj T) bool {
	for _, requirement := range s.labels {
		if !requirement.Matches(labels.Set(obj.GetLabels())) {
			return false
		}
	}
	for _, requirement := range s.fields {
		value := obj.GetName()
		switch requirement.Field {
		case nameField:
		case namespaceField:
			value = obj.GetNamespace()
		default:
			continue
		}
		if (value == requirement.Value) == (requirement.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// isLeftBehind reports whether the program has written an object of the cache so that
// the informer does not select it, and the cache does not show that yet.
func (s *source[T]) isLeftBehind(obj T) bool {
	if s.isWhole() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	written, ok := s.outside[keyOf(obj)]
	return ok && isOlder(obj.GetResourceVersion(), written)
}

func keyOf(obj client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// isOlder reports whether one resourceVersion is older than another, or may be.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return version != than && (err != nil || order < 0)
}
