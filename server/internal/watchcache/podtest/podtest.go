// Package podtest is the kinds, objects and store writes that the tests of the
// watch cache's packages share.
package podtest

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// FieldNode and FieldPhase are the indexes of the selectable fields.
const (
	FieldNode  = 0
	FieldPhase = 1
)

// PodResource is a kind with two selectable fields, of which one is final once it is set.
func PodResource() *resource.Resource {
	return &resource.Resource{
		Version: "v1", Kind: "Pod", ListKind: "PodList", Plural: "pods", Singular: "pod", Namespaced: true,
		StorePrefix: "/registry/pods/",
		New:         func() resource.Object { return &corev1.Pod{} },
		NewList:     func() runtime.Object { return &corev1.PodList{} },
		Fields: []resource.Field{
			FieldNode:  {Name: "spec.nodeName", Paths: [][]string{{"spec", "nodeName"}}, Final: true},
			FieldPhase: {Name: "status.phase", Paths: [][]string{{"status", "phase"}}},
		},
	}
}

// NodeResource is a cluster-scoped kind without fields.
func NodeResource() *resource.Resource {
	return &resource.Resource{
		Version: "v1", Kind: "Node", ListKind: "NodeList", Plural: "nodes", Singular: "node",
		StorePrefix: "/registry/minions/",
		New:         func() resource.Object { return &corev1.Node{} },
		NewList:     func() runtime.Object { return &corev1.NodeList{} },
	}
}

// Pod is an object of PodResource.
type Pod struct {
	Namespace, Name, Node, Phase string
	Labels                       map[string]string
}

// PodA, PodB and PodC are three pods in two namespaces and on two nodes.
var (
	PodA = Pod{Namespace: "one", Name: "a", Node: "n1", Phase: "Pending"}
	PodB = Pod{Namespace: "one", Name: "b", Node: "n2", Phase: "Running"}
	PodC = Pod{Namespace: "two", Name: "c", Node: "n1", Phase: "Running", Labels: map[string]string{"app": "web"}}
)

// Key is its key in a cache.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Value is its stored form.
func (p Pod) Value() []byte {
	set, _ := json.Marshal(p.Labels)
	if p.Labels == nil {
		set = []byte("{}")
	}
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"labels":%s},"spec":{"nodeName":%q},"status":{"phase":%q}}`,
		p.Name, p.Namespace, set, p.Node, p.Phase)
}

// NodeValue is the stored form of a node.
func NodeValue(name string) []byte {
	return fmt.Appendf(nil, `{"kind":"Node","apiVersion":"v1","metadata":{"name":%q}}`, name)
}

// Selecting compiles a selection of pods.
func Selecting(t testing.TB, namespace, name, label, field string) *state.Selection {
	t.Helper()
	ls, err := labels.Parse(label)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := fields.ParseSelector(field)
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.NewSelection(PodResource(), namespace, name, ls, fs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Write creates or replaces a pod in the store.
func Write(t testing.TB, store storage.Store, p Pod) storage.Revision {
	t.Helper()
	return WriteKey(t, store, "/registry/pods/"+p.Key(), p.Value())
}

// WriteKey creates or replaces a value in the store.
func WriteKey(t testing.TB, store storage.Store, key string, value []byte) storage.Revision {
	t.Helper()
	var revision storage.Revision
	current, err := store.Get(t.Context(), key, 0)
	if err == nil {
		revision, err = store.Update(t.Context(), key, value, current.Modified, 0)
	} else {
		revision, err = store.Create(t.Context(), key, value, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// Erase deletes a key from the store.
func Erase(t testing.TB, store storage.Store, key string) storage.Revision {
	t.Helper()
	current, err := store.Get(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := store.Delete(t.Context(), key, current.Modified)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// Now returns the store's current revision.
func Now(t testing.TB, store storage.Reader) storage.Revision {
	t.Helper()
	revision, err := store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return revision
}
