package scheme

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNotRegistered means that a Go type is neither one of Kubernetes' own nor
// registered. The error that wraps it names the type and says how to register it.
var ErrNotRegistered = errors.New("the type is not registered")

// Default is the scheme of clients whose options do not name another one. It is
// enough for most programs: register custom types in it before the first use.
var Default = New()

// Scheme maps Go types to kinds, resources and scopes. All methods may be called
// concurrently.
type Scheme struct {
	mu      sync.RWMutex
	types   map[reflect.Type]Mapping // registered; by pointer type
	kinds   map[schema.GroupVersionKind]Mapping
	plurals map[schema.GroupVersionResource]Mapping
}

// New returns a scheme that knows the types of Kubernetes: those of k8s.io/api,
// CustomResourceDefinition, APIService, and the metrics of nodes and pods.
func New() *Scheme {
	return &Scheme{
		types:   map[reflect.Type]Mapping{},
		kinds:   map[schema.GroupVersionKind]Mapping{},
		plurals: map[schema.GroupVersionResource]Mapping{},
	}
}

// object is client.Object, which this package cannot import.
type object interface {
	runtime.Object
	metav1.Object
}

// Register adds the Go type T, a pointer to a struct, to a scheme; nil is [Default].
// The type must not be used before. To register the same again changes nothing; it
// is an error if T is registered with something else, if the kind or resource has
// another Go type already, or if T is a type that every scheme knows.
func Register[T object](s *Scheme, m Mapping) error {
	typ := reflect.TypeFor[T]()
	m, err := m.complete(typ)
	if err != nil {
		return err
	}
	if s == nil {
		s = Default
	}
	return s.add(typ, m)
}

// complete returns the mapping with its defaults, or an error that says what is
// wrong with it.
func (m Mapping) complete(typ reflect.Type) (Mapping, error) {
	if typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		return m, fmt.Errorf("register %v: it must be a pointer to a struct", typ)
	}
	if m.Kind.Kind == "" || m.Kind.Version == "" {
		return m, fmt.Errorf("register %v: Kind needs a version and a kind, got %q", typ, describe(m.Kind))
	}
	if m.Scope != Namespaced && m.Scope != Cluster {
		return m, fmt.Errorf("register %v as %s: Scope must be scheme.Namespaced or scheme.Cluster, got %q", typ, describe(m.Kind), m.Scope)
	}
	if m.Resource == "" {
		m.Resource = pluralOf(m.Kind)
	}
	if strings.ToLower(m.Resource) != m.Resource || strings.ContainsAny(m.Resource, "/ ") {
		return m, fmt.Errorf("register %v as %s: Resource must be a plural name in lower case, as in URLs, got %q", typ, describe(m.Kind), m.Resource)
	}
	return m, nil
}

func (s *Scheme) add(typ reflect.Type, m Mapping) error {
	if known, ok := builtinType(typ); ok {
		return fmt.Errorf("register %v: every scheme knows it as %s", typ, describe(known.Kind))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.types[typ]; ok {
		if known == m {
			return nil
		}
		return fmt.Errorf("register %v as %s: it is registered as %s", typ, m.describe(), known.describe())
	}
	if _, ok := s.kinds[m.Kind]; ok {
		return fmt.Errorf("register %v as %s: another Go type is registered for this kind", typ, describe(m.Kind))
	}
	if other, ok := s.plurals[m.GroupVersionResource()]; ok {
		return fmt.Errorf("register %v as %s: resource %s belongs to %s", typ, describe(m.Kind), m.Resource, describe(other.Kind))
	}
	s.types[typ], s.kinds[m.Kind], s.plurals[m.GroupVersionResource()] = m, m, m
	return nil
}

// ByType returns what a pointer type is. The error wraps [ErrNotRegistered]. A kind
// without a resource of its own, such as a list, has an empty Resource.
func (s *Scheme) ByType(typ reflect.Type) (Mapping, error) {
	if m, ok := builtinType(typ); ok {
		return m, nil
	}
	s.mu.RLock()
	m, ok := s.types[typ]
	s.mu.RUnlock()
	if !ok {
		return Mapping{}, fmt.Errorf("%w: %v: call scheme.Register[%v] before its first use, or use client.Dynamic", ErrNotRegistered, typ, typ)
	}
	return m, nil
}

// For returns what the Go type T is in a scheme; nil is [Default]. The errors are
// those of [Scheme.ByType].
func For[T runtime.Object](s *Scheme) (Mapping, error) {
	if s == nil {
		s = Default
	}
	return s.ByType(reflect.TypeFor[T]())
}

// ByKind returns the mapping of a kind that is built in or registered. What a
// server serves beyond that, its discovery says.
func (s *Scheme) ByKind(kind schema.GroupVersionKind) (Mapping, bool) {
	s.mu.RLock()
	m, ok := s.kinds[kind]
	s.mu.RUnlock()
	if !ok {
		m, ok = builtinIndex().kinds[kind]
	}
	return m, ok
}

// ByResource returns the mapping of a resource that is built in or registered.
func (s *Scheme) ByResource(resource schema.GroupVersionResource) (Mapping, bool) {
	s.mu.RLock()
	m, ok := s.plurals[resource]
	s.mu.RUnlock()
	if !ok {
		m, ok = builtinIndex().plurals[resource]
	}
	return m, ok
}

// KindOf returns the kind of an object: that of its Go type, or else the one that the
// object carries in its TypeMeta, as unstructured objects do. The error wraps
// [ErrNotRegistered] if there is neither.
func (s *Scheme) KindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if obj == nil {
		return schema.GroupVersionKind{}, errors.New("the object is nil")
	}
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		kind := obj.GetObjectKind().GroupVersionKind()
		if kind.Kind == "" || kind.Version == "" {
			return kind, fmt.Errorf("the %T has no apiVersion and kind, and its Go type does not imply them", obj)
		}
		return kind, nil
	}
	m, err := s.ByType(reflect.TypeOf(obj))
	if err == nil {
		return m.Kind, nil
	}
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
		return kind, nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%w, or set apiVersion and kind of the object", err)
}
