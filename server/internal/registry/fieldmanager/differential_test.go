package fieldmanager

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/server/internal/resource"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// managerOf is that of a kind with a Go type.
func managerOf(obj resource.Object, subresource string) Manager {
	gvk := obj.GetObjectKind().GroupVersionKind()
	t := reflect.TypeOf(obj).Elem()
	return Manager{Subresource: subresource, Now: start, Resource: &resource.Resource{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: "things",
		New: func() resource.Object { return reflect.New(t).Interface().(resource.Object) },
	}}
}

func randomObject(t *testing.T, r filler, goType reflect.Type, like resource.Object) resource.Object {
	t.Helper()
	obj := reflect.New(goType).Interface().(resource.Object)
	r.fill(reflect.ValueOf(obj).Elem(), 0)
	obj.GetObjectKind().SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
	obj.SetManagedFields(nil)
	obj.SetUID("u")
	obj.SetName("n")
	return readBack(t, obj)
}

// readBack returns what a client reads of the object: the library distinguishes
// objects that have the same JSON form.
func readBack(t *testing.T, obj resource.Object) resource.Object {
	t.Helper()
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(resource.Object)
	data, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestByTypeIsWhatTheLibrarySays holds the short way against the long one, for
// every kind and objects of all sorts: the entries must be the same.
func TestByTypeIsWhatTheLibrarySays(t *testing.T) {
	kinds := scheme.Scheme.AllKnownTypes()
	names := make([]string, 0, len(kinds))
	byName := map[string]reflect.Type{}
	examples := map[string]resource.Object{}
	for gvk, goType := range kinds {
		obj, ok := reflect.New(goType).Interface().(resource.Object)
		if !ok || gvk.Version == "__internal" {
			continue
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		names = append(names, gvk.String())
		byName[gvk.String()], examples[gvk.String()] = goType, obj
	}
	slices.Sort(names)
	sure, all := 0, 0
	for seed := range uint64(2) {
		r := filler{rand.New(rand.NewPCG(seed, 7))}
		for _, name := range names {
			a, b := differential(t, r, name, byName[name], examples[name])
			sure, all = sure+a, all+b
		}
	}
	if sure*10 < all*6 {
		t.Errorf("only %d of %d writes went the short way", sure, all)
	}
}

// differential writes random states of one object in the names of random
// managers, both ways.
func differential(t *testing.T, r filler, name string, goType reflect.Type, like resource.Object) (sure, all int) {
	t.Helper()
	m := managerOf(like, "")
	live := randomObject(t, r, goType, like)
	live.SetUID("")
	long := live.DeepCopyObject().(resource.Object)
	m.updateByLibrary(t.Context(), nil, long, "first")
	all++
	if m.createByType(live, "first") {
		sure++
		compareEntries(t, name+" create", live, long)
	}
	live = long
	live.SetUID("u")
	for i := range 6 {
		m.Now = m.Now.Add(time.Second)
		m.Subresource = []string{"", "status"}[r.IntN(2)]
		next := randomObject(t, r, goType, like)
		if r.IntN(2) == 0 {
			next = live.DeepCopyObject().(resource.Object)
			v := reflect.ValueOf(next).Elem()
			r.fill(v.Field(r.IntN(v.NumField()-1)+1), 0)
			next.SetManagedFields(nil)
			next.SetUID("u")
			next = readBack(t, next)
		}
		manager := []string{"first", "second", "third"}[r.IntN(3)]
		long := next.DeepCopyObject().(resource.Object)
		m.updateByLibrary(t.Context(), live, long, manager)
		all++
		if m.updateByType(live, next, manager) {
			sure++
			if !compareEntries(t, name+" update", next, long) {
				t.Logf("step %d of %s by %s/%s", i, name, manager, m.Subresource)
				return sure, all
			}
		}
		live = long
	}
	return sure, all
}

func compareEntries(t *testing.T, what string, got, want resource.Object) bool {
	t.Helper()
	a, b := got.GetManagedFields(), want.GetManagedFields()
	if equalEntries(a, b) {
		return true
	}
	t.Errorf("%s:\n got %v\nwant %v", what, describe(a), describe(b))
	return false
}

func describe(entries []metav1.ManagedFieldsEntry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Manager + " " + string(e.Operation) + " " + e.Subresource + " " + e.Time.UTC().Format(time.TimeOnly) + " " + e.FieldsV1.GetRawString()
	}
	return out
}
