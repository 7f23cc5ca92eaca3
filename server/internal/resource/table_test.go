package resource_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// custom returns a custom resource.
func custom(group, version, plural, kind string) *resource.Resource {
	return &resource.Resource{
		Group: group, Version: version, Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural + "-one",
		Namespaced: true, StorePrefix: "/registry/" + group + "/" + version + plural + "/",
		New:     func() resource.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		Fields:  []resource.Field{{Name: "spec.color", Paths: [][]string{{"spec", "color"}}}, {Name: "spec.size", Paths: [][]string{{"spec", "size"}}, Default: "0"}},
	}
}

func TestTableLooksUp(t *testing.T) {
	a := custom("example.com", "v1", "widgets", "Widget")
	beta := custom("example.com", "v1beta1", "widgets", "Widget")
	next := custom("example.com", "v2", "widgets", "Widget")
	core := custom("", "v1", "things", "Thing")
	table, err := resource.NewTable(beta, a, next, core)
	if err != nil {
		t.Fatal(err)
	}
	if table.Lookup("example.com", "v1", "widgets") != a || table.Lookup("example.com", "v1", "gadgets") != nil {
		t.Error("Lookup")
	}
	if table.ByKind(beta.GroupVersionKind()) != beta || table.ByKind(schema.GroupVersionKind{Kind: "X"}) != nil {
		t.Error("ByKind")
	}
	if want := []*resource.Resource{core, next, a, beta}; !slices.Equal(table.All(), want) {
		t.Errorf("All is not in order")
	}
	groups := table.Groups()
	if len(groups) != 2 || groups[0].Name != "" || !slices.Equal(groups[1].Versions, []string{"v2", "v1", "v1beta1"}) {
		t.Errorf("Groups: %v", groups)
	}
}

// TestTableOfManyVersions: a definition with as many versions as fit into it is replaced without comparing each with
// each: that took longer than all tests of the package may.
func TestTableOfManyVersions(t *testing.T) {
	const many = 150_000
	var list []*resource.Resource
	var names []schema.GroupVersionResource
	for i := range many {
		r := custom("example.com", fmt.Sprint("v", i+1), "widgets", "Widget")
		list, names = append(list, r), append(names, r.GroupVersionResource())
	}
	table, err := resource.NewTable(list...)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Replace(names[1:], custom("example.com", "v0", "widgets", "Widget")); err != nil {
		t.Fatal(err)
	}
	if versions := table.Groups()[0].Versions; !slices.Equal(versions, []string{"v1", "v0"}) {
		t.Errorf("%d versions are left", len(versions))
	}
}

func TestTableRefuses(t *testing.T) {
	good := custom("example.com", "v1", "widgets", "Widget")
	for name, bad := range map[string]func(r *resource.Resource){
		"the same name":  func(r *resource.Resource) { r.Kind, r.StorePrefix = "Other", "/registry/other/" },
		"the same kind":  func(r *resource.Resource) { r.Plural, r.StorePrefix = "other", "/registry/other/" },
		"the same place": func(r *resource.Resource) { r.Plural, r.Kind = "other", "Other" },
		"no kind":        func(r *resource.Resource) { r.Plural, r.Kind, r.StorePrefix = "other", "", "/registry/other/" },
		"no New": func(r *resource.Resource) {
			r.Plural, r.Kind, r.StorePrefix, r.New = "other", "Other", "/registry/other/", nil
		},
		"a prefix not closed":  func(r *resource.Resource) { r.Plural, r.Kind, r.StorePrefix = "other", "Other", "/registry/other" },
		"a view without story": func(r *resource.Resource) { r.Plural, r.Kind, r.Storage = "other", "Other", good },
	} {
		t.Run(name, func(t *testing.T) {
			r := custom("example.com", "v1", "widgets", "Widget")
			bad(r)
			table, err := resource.NewTable(good)
			if err != nil {
				t.Fatal(err)
			}
			if err := table.Add(r); err == nil {
				t.Error("accepted")
			}
			if len(table.All()) != 1 {
				t.Error("a refused resource is in the table")
			}
		})
	}
}

func TestTableChangesUnderReaders(t *testing.T) {
	stay := custom("example.com", "v1", "stays", "Stay")
	come := custom("example.com", "v1", "comes", "Come")
	table, err := resource.NewTable(stay, come)
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if table.Lookup("example.com", "v1", "stays") != stay || table.Lookup("example.com", "v1", "comes") == nil {
					t.Error("a replaced resource was missing for a moment")
					return
				}
			}
		})
	}
	for range 200 {
		again := custom("example.com", "v1", "comes", "Come")
		if err := table.Replace([]schema.GroupVersionResource{again.GroupVersionResource()}, again); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
	if err := table.Remove(come.GroupVersionResource()); err != nil || table.Lookup("example.com", "v1", "comes") != nil {
		t.Errorf("Remove: %v", err)
	}
}
