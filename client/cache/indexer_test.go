package cache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// thing is an object that is not a Kubernetes one: the Indexer asks for no
// more than a key function.
type thing struct {
	key    string
	values map[string][]string // by index
	state  int
}

func keyOf(o *thing) (string, error) {
	if o.key == "" {
		return "", errors.New("no key")
	}
	return o.key, nil
}

func by(index string) IndexFunc[*thing] {
	return func(o *thing) ([]string, error) {
		if slices.Contains(o.values[index], "error") {
			return nil, errors.New("cannot")
		}
		return o.values[index], nil
	}
}

// colored makes a thing with its values in the index "color".
func colored(key string, colors ...string) *thing {
	return &thing{key: key, values: map[string][]string{"color": colors}}
}

func newColored(t *testing.T, things ...*thing) *Indexer[*thing] {
	t.Helper()
	x := NewIndexer(keyOf, Indexers[*thing]{"color": by("color")})
	for _, o := range things {
		must(t, x.Add(o))
	}
	return x
}

func keysOf(things []*thing) string {
	var keys []string
	for _, o := range things {
		keys = append(keys, o.key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

func TestIndexerHoldsTheNewestState(t *testing.T) {
	x := newColored(t)
	first, second := colored("a", "red"), colored("a", "blue")
	must(t, x.Add(first))
	if got, ok := x.Get("a"); !ok || got != first {
		t.Errorf("got %v, %v: want the very object", got, ok)
	}
	must(t, x.Update(second))
	if got, _ := x.Get("a"); got != second || x.Len() != 1 {
		t.Errorf("got %v, %d objects", got, x.Len())
	}
	must(t, x.Delete(first), x.Delete(first)) // by key; twice is harmless
	if _, ok := x.Get("a"); ok || x.Len() != 0 {
		t.Error("it is still there")
	}
}

func TestSwapAndRemoveReturnWhatWasThere(t *testing.T) {
	x := newColored(t)
	a1, a2 := colored("a"), colored("a")
	if _, existed, err := x.Swap("a", a1); existed || err != nil {
		t.Error("there was something before the first", err)
	}
	if old, existed, err := x.Swap("a", a2); !existed || old != a1 || err != nil {
		t.Error("swap", old, existed, err)
	}
	if old, existed := x.Remove("a"); !existed || old != a2 {
		t.Error("remove", old, existed)
	}
	if _, existed := x.Remove("a"); existed {
		t.Error("removed twice")
	}
}

func TestIndexFollowsItsObjects(t *testing.T) {
	x := newColored(t, colored("a", "red"), colored("b", "red", "blue"), colored("c"))
	expect := func(step string, want map[string]string) {
		t.Helper()
		for _, color := range []string{"red", "blue", "green"} {
			found, err := x.ByIndex("color", color)
			if err != nil || keysOf(found) != want[color] {
				t.Errorf("%s: %s is %q, %v, want %q", step, color, keysOf(found), err, want[color])
			}
			keys, err := x.IndexKeys("color", color)
			slices.Sort(keys)
			if err != nil || strings.Join(keys, " ") != want[color] {
				t.Errorf("%s: keys of %s are %q, %v", step, color, keys, err)
			}
		}
		values, err := x.IndexValues("color")
		if err != nil || len(values) != len(want) {
			t.Errorf("%s: values %q, %v", step, values, err)
		}
	}
	expect("added", map[string]string{"red": "a b", "blue": "b"})
	must(t, x.Update(colored("a", "green")))
	expect("another value", map[string]string{"red": "b", "blue": "b", "green": "a"})
	must(t, x.Update(colored("b", "blue", "blue", "red", "blue")))
	expect("values twice and in another order", map[string]string{"red": "b", "blue": "b", "green": "a"})
	must(t, x.Update(colored("b")))
	expect("no value", map[string]string{"green": "a"})
	must(t, x.Delete(colored("a")))
	expect("deleted", nil)
}

func TestIndexReturnsTheNewestStateToo(t *testing.T) {
	x := newColored(t, colored("a", "red"))
	newest := colored("a", "red")
	must(t, x.Update(newest))
	if found, err := x.ByIndex("color", "red"); err != nil || len(found) != 1 || found[0] != newest {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestIndexFindsWhatSharesAValue(t *testing.T) {
	x := newColored(t, colored("a", "red", "blue"), colored("b", "blue"), colored("c", "red", "blue"), colored("d", "green"))
	for _, c := range []struct {
		obj  *thing
		want string
	}{
		{colored("not stored", "red"), "a c"},
		{colored("not stored", "red", "blue"), "a b c"}, // each once
		{colored("not stored", "white"), ""},
		{colored("not stored"), ""},
	} {
		found, err := x.Index("color", c.obj)
		if err != nil || keysOf(found) != c.want {
			t.Errorf("%v: %q, %v, want %q", c.obj.values, keysOf(found), err, c.want)
		}
	}
	if _, err := x.Index("color", colored("not stored", "error")); err == nil {
		t.Error("the function's error is lost")
	}
}

func TestUnknownIndexIsAnError(t *testing.T) {
	x := newColored(t, colored("a", "red"))
	_, byIndex := x.ByIndex("shape", "round")
	_, keys := x.IndexKeys("shape", "round")
	_, values := x.IndexValues("shape")
	_, index := x.Index("shape", colored("a"))
	for _, err := range []error{byIndex, keys, values, index} {
		if !errors.Is(err, ErrNoIndex) {
			t.Errorf("%v is not ErrNoIndex", err)
		}
	}
	if x.HasIndex("shape") || !x.HasIndex("color") {
		t.Error("HasIndex")
	}
}

func TestAddIndexersIndexesWhatIsThere(t *testing.T) {
	x := newColored(t, &thing{key: "a", values: map[string][]string{"shape": {"round"}}})
	must(t, x.AddIndexers(Indexers[*thing]{"shape": by("shape")}))
	if found, err := x.ByIndex("shape", "round"); err != nil || keysOf(found) != "a" {
		t.Errorf("%q, %v", keysOf(found), err)
	}
	if err := x.AddIndexers(Indexers[*thing]{"color": by("color"), "size": by("size")}); err == nil || x.HasIndex("size") {
		t.Error("a name that is taken must stop all of them:", err)
	}
	if err := x.AddIndexers(Indexers[*thing]{"size": nil}); err == nil || x.HasIndex("size") {
		t.Error("an index without a function was accepted:", err)
	}
}

func TestFailingIndexFunctionLosesThatIndexOnly(t *testing.T) {
	x := NewIndexer(keyOf, Indexers[*thing]{"color": by("color")})
	must(t, x.AddIndexers(Indexers[*thing]{"shape": by("shape")}))
	must(t, x.Add(&thing{key: "a", values: map[string][]string{"color": {"red"}, "shape": {"round"}}}))
	var failed *IndexError
	err := x.Update(&thing{key: "a", values: map[string][]string{"color": {"error"}, "shape": {"square"}}, state: 2})
	if !errors.As(err, &failed) || failed.Index != "color" || failed.Key != "a" || errors.Unwrap(err) == nil {
		t.Errorf("error %v", err)
	}
	if got, ok := x.Get("a"); !ok || got.state != 2 {
		t.Error("the object is not stored")
	}
	red, _ := x.ByIndex("color", "red")
	square, _ := x.ByIndex("shape", "square")
	if len(red) != 0 || keysOf(square) != "a" {
		t.Errorf("red: %q, square: %q", keysOf(red), keysOf(square))
	}
	must(t, x.Update(colored("a", "red")))
	if red, _ := x.ByIndex("color", "red"); keysOf(red) != "a" {
		t.Error("it does not come back")
	}
}

func TestPanickingIndexFunctionLosesThatIndexOnly(t *testing.T) {
	sized := by("size")
	x := NewIndexer(keyOf, Indexers[*thing]{"size": func(o *thing) ([]string, error) {
		if o.state < 0 {
			panic("no size")
		}
		return sized(o)
	}})
	must(t, x.AddIndexers(Indexers[*thing]{"color": by("color")}))
	good := &thing{key: "good", values: map[string][]string{"size": {"5"}, "color": {"red"}}}
	bad := &thing{key: "bad", values: good.values, state: -1}
	check := func(when string, err error) {
		t.Helper()
		var failed *IndexError
		if !errors.As(err, &failed) || failed.Index != "size" || failed.Key != "bad" || !strings.Contains(err.Error(), "panicked: no size") {
			t.Errorf("%s: error %v", when, err)
		}
		five, _ := x.ByIndex("size", "5")
		red, _ := x.ByIndex("color", "red")
		if keysOf(five) != "good" || keysOf(red) != "bad good" {
			t.Errorf("%s: size 5: %q, red: %q", when, keysOf(five), keysOf(red))
		}
	}
	must(t, x.Add(good))
	check("added", x.Add(bad))
	check("updated", x.Update(bad))
	check("replaced", x.Replace([]*thing{bad, good}))
	if _, err := x.Index("size", bad); err == nil || !strings.Contains(err.Error(), "panicked: no size") {
		t.Errorf("looked up: error %v", err)
	}
	var failed *IndexError
	if err := x.AddIndexers(Indexers[*thing]{"all": func(*thing) ([]string, error) { panic("never") }}); !errors.As(err, &failed) || failed.Index != "all" {
		t.Errorf("an index function that always panics: error %v", err)
	}
}

func TestReplaceIsTheWholeContent(t *testing.T) {
	x := newColored(t, colored("a", "red"), colored("b", "red"))
	newest := colored("c", "red")
	must(t, x.Replace([]*thing{colored("b", "blue"), colored("c", "blue"), newest}))
	red, _ := x.ByIndex("color", "red")
	blue, _ := x.ByIndex("color", "blue")
	if keysOf(x.List()) != "b c" || keysOf(red) != "c" || keysOf(blue) != "b" || x.Len() != 2 {
		t.Errorf("all %q, red %q, blue %q", keysOf(x.List()), keysOf(red), keysOf(blue))
	}
	if got, _ := x.Get("c"); got != newest {
		t.Error("the last of two with one key must win")
	}
	if err := x.Replace([]*thing{colored("d"), colored("")}); err == nil || keysOf(x.List()) != "b c" {
		t.Errorf("after %v: %q", err, keysOf(x.List()))
	}
}

func TestWithoutAKeyNothingIsDone(t *testing.T) {
	x := newColored(t, colored("a"))
	if x.Add(colored("")) == nil || x.Update(colored("")) == nil || x.Delete(colored("")) == nil || x.Len() != 1 {
		t.Error("an object without a key was accepted")
	}
}

func TestWhatIsReturnedBelongsToTheCaller(t *testing.T) {
	x := newColored(t, colored("a", "red"), colored("b", "red"))
	red, err := x.ByIndex("color", "red")
	must(t, err)
	all := x.List()
	clear(red)
	clear(all)
	again, _ := x.ByIndex("color", "red")
	if keysOf(again) != "a b" || keysOf(x.List()) != "a b" {
		t.Error("the caller's slice is the Indexer's")
	}
}

func TestRangeStops(t *testing.T) {
	x := newColored(t, colored("a"), colored("b"), colored("c"))
	n := 0
	x.Range(func(key string, o *thing) bool {
		if n++; key != o.key {
			t.Errorf("%q under %q", o.key, key)
		}
		return n < 2
	})
	if n != 2 {
		t.Errorf("%d visits", n)
	}
}

// Random changes against maps: every read answers as they do, after each step.
func TestIndexerAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	x := NewIndexer(keyOf, Indexers[*thing]{"color": by("color"), "shape": by("shape")})
	model := map[string]*thing{}
	some := func(of string) []string {
		var values []string
		for range random.IntN(4) {
			values = append(values, fmt.Sprint(of, random.IntN(5)))
		}
		return values
	}
	for step := range 20_000 {
		key := fmt.Sprint("k", random.IntN(40))
		switch random.IntN(20) {
		case 0, 1, 2, 3:
			x.Remove(key)
			delete(model, key)
		case 4:
			if step%50 == 0 {
				var all []*thing
				for k, o := range model {
					if random.IntN(2) == 0 {
						all = append(all, o)
					} else {
						delete(model, k)
					}
				}
				must(t, x.Replace(all))
			}
		default:
			o := &thing{key: key, values: map[string][]string{"color": some("c"), "shape": some("s")}, state: step}
			must(t, x.Update(o))
			model[key] = o
		}
		if x.Len() != len(model) || len(x.List()) != len(model) || len(x.Keys()) != len(model) {
			t.Fatalf("step %d: %d objects, want %d", step, x.Len(), len(model))
		}
		if got, ok := x.Get(key); got != model[key] || ok != (model[key] != nil) {
			t.Fatalf("step %d: %s is %v, want %v", step, key, got, model[key])
		}
		index := []string{"color", "shape"}[step%2]
		value := fmt.Sprint(index[:1], random.IntN(5))
		var want []*thing
		for _, o := range model {
			if slices.Contains(o.values[index], value) {
				want = append(want, o)
			}
		}
		found, err := x.ByIndex(index, value)
		for _, o := range found {
			if model[o.key] != o {
				t.Fatalf("step %d: an old state of %s is under %s", step, o.key, value)
			}
		}
		if err != nil || keysOf(found) != keysOf(want) {
			t.Fatalf("step %d: %s is %q, %v, want %q", step, value, keysOf(found), err, keysOf(want))
		}
	}
}

// Readers see whole states while a writer works. Run it with -race.
func TestReadersAndWriters(t *testing.T) {
	x := newColored(t)
	var all sync.WaitGroup
	for w := range 2 {
		all.Go(func() {
			for i := range 3000 {
				key := fmt.Sprint(w, "-", i%50)
				if i%7 == 0 {
					x.Remove(key)
				} else if err := x.Update(colored(key, fmt.Sprint(i%3))); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for i := range 3000 {
				found, err := x.ByIndex("color", fmt.Sprint(i%3))
				if err != nil || slices.Contains(found, nil) || slices.Contains(x.List(), nil) {
					t.Error("a hole", err)
				}
			}
		})
	}
	all.Wait()
}

func TestByIndexAny(t *testing.T) {
	x := newColored(t, colored("a", "red"), colored("b", "red", "blue"), colored("c", "green"), colored("d"))
	for _, test := range []struct{ colors, want string }{
		{"", ""}, {"red", "a b"}, {"red blue", "a b"}, {"blue green red", "a b c"}, {"red red", "a b"}, {"white", ""}, {"white green", "c"},
	} {
		found, err := x.ByIndexAny("color", strings.Fields(test.colors)...)
		if err != nil || keysOf(found) != test.want {
			t.Errorf("%q: %q, %v, want %q", test.colors, keysOf(found), err, test.want)
		}
	}
	if _, err := x.ByIndexAny("size", "1", "2"); !errors.Is(err, ErrNoIndex) {
		t.Errorf("an index that is not there: %v", err)
	}
}

// An object that goes from one value to another is under one of them at any moment.
func TestByIndexAnyIsOfOneMoment(t *testing.T) {
	x := newColored(t, colored("a", "red"))
	var writer sync.WaitGroup
	ended := make(chan struct{})
	writer.Go(func() {
		defer close(ended)
		for n := range 20000 {
			if err := x.Update(colored("a", []string{"blue", "red"}[n%2])); err != nil {
				t.Error(err)
			}
		}
	})
	defer writer.Wait()
	for {
		if found, err := x.ByIndexAny("color", "red", "blue"); err != nil || len(found) != 1 {
			t.Fatalf("%d objects, %v", len(found), err)
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ namespace, name, key string }{{"", "node", "node"}, {"ns", "pod", "ns/pod"}} {
		obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.name}}
		key, err := MetaNamespaceKey(obj)
		if err != nil || key != c.key {
			t.Errorf("key %q, %v, want %q", key, err, c.key)
		}
		namespace, name, err := SplitObjectKey(key)
		if err != nil || namespace != c.namespace || name != c.name {
			t.Errorf("split %q, %q, %v", namespace, name, err)
		}
	}
	if _, err := MetaNamespaceKey(&corev1.Pod{}); err == nil {
		t.Error("an object without a name has a key")
	}
	if _, err := MetaNamespaceKey(7); err == nil {
		t.Error("a number has a key")
	}
	if _, _, err := SplitObjectKey("a/b/c"); err == nil {
		t.Error("a/b/c was split")
	}
	if _, err := MetaNamespaceIndex(7); err == nil {
		t.Error("a number has a namespace")
	}
}

func TestIndexersAreThoseThatWereAdded(t *testing.T) {
	x := NewIndexer[*corev1.Pod](nil, Indexers[*corev1.Pod]{NamespaceIndex: MetaNamespaceIndex[*corev1.Pod]})
	if err := x.AddIndexers(Indexers[*corev1.Pod]{"name": func(p *corev1.Pod) ([]string, error) { return []string{p.Name}, nil }}); err != nil {
		t.Fatal(err)
	}
	functions := x.Indexers()
	if values, err := functions["name"](pod("a", 1, 1)); len(functions) != 2 || err != nil || !slices.Equal(values, []string{"a"}) {
		t.Errorf("%d index functions; of the name: %v, %v", len(functions), values, err)
	}
	delete(functions, "name")
	if !x.HasIndex("name") {
		t.Error("the caller's map is the Indexer's own")
	}
}
