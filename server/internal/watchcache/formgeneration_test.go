package watchcache

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestFormsOfAnOlderGenerationAreDropped: an object keeps the forms of one generation,
// and counts no others.
func TestFormsOfAnOlderGenerationAreDropped(t *testing.T) {
	c := filled(t, Options{}, podA)
	o, _ := c.Current().Get(podA.Key())
	made := 0
	encode := func(size int) func(*Object) ([]byte, error) {
		return func(*Object) ([]byte, error) { made++; return make([]byte, size), nil }
	}
	use := func(id FormID, generation uint64, size, wantMade int, wantBytes int64) {
		t.Helper()
		made = 0
		got, err := o.FormAt(id, generation, encode(size))
		if err != nil || len(got) != size || made != wantMade {
			t.Errorf("form of generation %d: %d bytes, made %d times, %v", generation, len(got), made, err)
		}
		if bytes := c.Stats().FormBytes; bytes != wantBytes {
			t.Errorf("%d bytes are counted, want %d", bytes, wantBytes)
		}
	}
	other := NewForm("other")
	use(testForm, 1, 100, 1, 100)
	use(testForm, 1, 100, 0, 100)
	use(other, 1, 10, 1, 110)
	use(testForm, 3, 200, 1, 200) // the object's other forms are of an older generation too
	use(testForm, 2, 50, 1, 200)  // a caller of the older generation gets a form that is not shared
	use(testForm, 3, 200, 0, 200)
	if !o.HasForm(testForm, 3) || o.HasForm(testForm, 1) || o.HasForm(other, 3) {
		t.Error("the object does not have the forms of its generation only")
	}
	if same, err := o.FormAt(other, 3, func(o *Object) ([]byte, error) { return o.JSON(), nil }); err != nil || c.Stats().FormBytes != 200 {
		t.Errorf("a form that is the object itself was counted: %d, %v", len(same), err)
	}
}

// TestAFailedFormIsTriedAgain: a conversion webhook may have recovered.
func TestAFailedFormIsTriedAgain(t *testing.T) {
	o, _ := filled(t, Options{}, podA).Current().Get(podA.Key())
	bad := errors.New("the webhook failed")
	if _, err := o.Form(testForm, func(*Object) ([]byte, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	if got, err := o.Form(testForm, func(*Object) ([]byte, error) { return []byte("converted"), nil }); err != nil || string(got) != "converted" {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestWatchersReadAClosedCacheToItsEnd: slow watchers get the last events too.
func TestWatchersReadAClosedCacheToItsEnd(t *testing.T) {
	c := filled(t, Options{}, podA)
	behind, selected := watching(t, c, WatchOptions{After: 10}), watching(t, c, WatchOptions{After: 10, Selection: selecting(t, podA.Namespace, "", "", "")})
	c.Apply([]Change{gone(podA.Key(), 11)})
	c.Close()
	for _, w := range []*Watcher{behind, selected} {
		buf := make([]Event, 4)
		<-w.Ready()
		if n, err := w.Read(buf); n != 1 || err != nil || buf[0].Type != Deleted {
			t.Errorf("read %d, %v", n, err)
		}
		if _, err := w.Read(buf); !errors.Is(err, ErrClosed) {
			t.Errorf("then %v", err)
		}
	}
	if _, err := c.Watch(WatchOptions{After: 11}); !errors.Is(err, ErrClosed) {
		t.Errorf("a new watch: %v", err)
	}
}

// TestWakeWakesSleepers although there is no event.
func TestWakeWakesSleepers(t *testing.T) {
	c := filled(t, Options{}, podA)
	w := watching(t, c, WatchOptions{After: 10})
	<-w.Ready()
	if n, err := w.Read(make([]Event, 1)); n != 0 || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	c.Wake()
	<-w.Ready()
}

// thingResource is a custom kind without selectable fields.
func thingResource() *resource.Resource {
	return &resource.Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things", Mixed: true, Namespaced: true, StorePrefix: "/registry/example.com/things/",
		New:     func() resource.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
}

// thing is a change of a Thing of a color.
func thing(t *testing.T, c *Cache, name, color string, revision int) Change {
	t.Helper()
	o, err := c.Decode("ns/"+name, []byte(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"`+name+`","namespace":"ns"},"spec":{"color":"`+color+`"}}`), rev(revision))
	if err != nil {
		t.Fatal(err)
	}
	return Change{Key: o.Key, Object: o, Revision: o.Revision}
}

// selectThings makes spec.color selectable and selects by it.
func selectThings(t *testing.T, res *resource.Resource, color string) *Selection {
	t.Helper()
	res.Select(resource.Field{Name: "spec.color", Paths: [][]string{{"spec", "color"}}})
	s, err := NewSelection(res, "", "", nil, fields.OneTermEqualSelector("spec.color", color))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCoalescedHistoryOfFieldsThatBecomeSelectable: the earlier value of such a
// field is not always known, so a client that may have an object that it no longer
// selects must get the object's deletion.
func TestCoalescedHistoryOfFieldsThatBecomeSelectable(t *testing.T) {
	res := thingResource()
	c := New(res, Options{HistoryEvents: 1})
	var objects []*Object
	for _, name := range []string{"changed", "deleted", "unchanged"} {
		objects = append(objects, thing(t, c, name, "red", 10).Object)
	}
	if _, err := c.Fill(objects, 10); err != nil {
		t.Fatal(err)
	}
	c.Apply([]Change{thing(t, c, "changed", "blue", 11)})
	c.Apply([]Change{thing(t, c, "young", "red", 12)})
	c.Apply([]Change{gone("ns/deleted", 13)})
	c.Apply([]Change{gone("ns/young", 14)})
	c.Apply([]Change{thing(t, c, "unchanged", "red", 15)})
	c.Apply([]Change{thing(t, c, "last", "red", 16)})
	for i, tombstones := 0, c.tombstones.After(0); i < len(tombstones); i++ {
		tombstones[i].Last = c.TombstoneMetadata(tombstones[i].Last)
	}
	red := selectThings(t, res, "red")
	expect(t, drain(t, watching(t, c, WatchOptions{After: 10, Selection: red})),
		"DELETED ns/changed@10", "DELETED ns/deleted@10", "MODIFIED ns/unchanged@15", "ADDED ns/last@16")
	expect(t, drain(t, watching(t, c, WatchOptions{After: 12, Selection: red})),
		"DELETED ns/deleted@12", "DELETED ns/young@12", "MODIFIED ns/unchanged@15", "ADDED ns/last@16")
}

// TestFieldsThatBecomeSelectable: objects and events from before a field became
// selectable are selected by it as well.
func TestFieldsThatBecomeSelectable(t *testing.T) {
	res := thingResource()
	c := New(res, Options{})
	if _, err := c.Fill([]*Object{thing(t, c, "it", "red", 10).Object}, 10); err != nil {
		t.Fatal(err)
	}
	c.Apply([]Change{thing(t, c, "it", "blue", 11)})
	if _, err := NewSelection(res, "", "", nil, fields.OneTermEqualSelector("spec.color", "red")); err == nil {
		t.Error("selected by a field that is none")
	}
	red, blue := selectThings(t, res, "red"), selectThings(t, res, "blue")
	wasRed, isBlue := watching(t, c, WatchOptions{After: 10, Selection: red}), watching(t, c, WatchOptions{After: 10, Selection: blue})
	expect(t, drain(t, wasRed), "DELETED ns/it@11")
	expect(t, drain(t, isBlue), "ADDED ns/it@11")
	c.Apply([]Change{thing(t, c, "it", "red", 12)})
	expect(t, drain(t, wasRed), "ADDED ns/it@12")
	expect(t, drain(t, isBlue), "DELETED ns/it@12")
	found := 0
	for range c.Current().Select(red, "") {
		found++
	}
	if found != 1 {
		t.Errorf("%d found", found)
	}
}
