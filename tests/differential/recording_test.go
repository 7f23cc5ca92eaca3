package differential

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestRecordingForgets: answers are kept, until the object that they are about changes.
func TestRecordingForgets(t *testing.T) {
	c, k := widgets(t)
	o := widget(t, k)
	r := newRecording()
	r.Catalog = c
	r.use(o)
	const name = "create example.com/v1 Widget small spec.size=-1"
	r.keep(name, &answer{Code: 422, Body: decode(t, `{"a":1}`)})
	const ofMore = "create example.com/v1 Widget more spec.size=-1"
	r.use(&object{k, more, o.value})
	r.keep(ofMore, &answer{Code: 422})
	r.set(&object{k, full, o.value})
	file := filepath.Join(t.TempDir(), "below", "recording.json.gz")
	if err := r.save(file); err != nil {
		t.Fatal(err)
	}
	read, err := openRecording(file)
	if err != nil {
		t.Fatal(err)
	}
	o.kind = read.Catalog.find("example.com/v1", "Widget")
	read.use(o)
	if got := read.answer(name); got == nil || got.Code != 422 || literal(got.Body) != `{"a":1}` {
		t.Errorf("the answer was read as %v", got)
	}
	if read.Objects[full][k.String()] == nil {
		t.Error("the full object is lost")
	}
	changed, err := edit{path{"spec", "size"}, "2"}.apply(o.value)
	if err != nil {
		t.Fatal(err)
	}
	read.use(&object{o.kind, small, changed})
	if got := read.answer(name); got != nil || len(read.Objects[full]) > 0 {
		t.Errorf("the answer about another object stays: %v, %v", got, read.Objects[full])
	}
	if read.answer(ofMore) == nil {
		t.Error("the answer about the object that did not change is lost")
	}
	read.use(&object{o.kind, more, changed})
	if read.answer(ofMore) != nil {
		t.Error("the answer about another object of more stays")
	}
}

// TestKindsChanged: a kind that is new or gone is named.
func TestKindsChanged(t *testing.T) {
	c, k := widgets(t)
	now := newRecording()
	now.Catalog = c
	if added, gone := now.kindsChanged(newRecording()); !slices.Equal(added, []string{k.String()}) || gone != nil {
		t.Errorf("beside nothing: %q, %q", added, gone)
	}
	if added, gone := newRecording().kindsChanged(now); len(added) > 0 || !slices.Equal(gone, []string{k.String()}) {
		t.Errorf("nothing beside it: %q, %q", added, gone)
	}
}

// TestChanges: what the judge answers otherwise than it did is found, of objects that are as they were.
func TestChanges(t *testing.T) {
	judge := startOurs(t)
	r, err := openRecording(recorded)
	if err != nil {
		t.Fatal(err)
	}
	clear(r.Answers)
	c := &comparisonRun{ours: startOurs(t), recording: r, log: t.Output(), workers: 1, judge: sync.OnceValues(func() (*side, error) { return judge, nil })}
	if err := c.load(t.Context(), []string{"v1 ConfigMap", "v1 Secret"}, nil); err != nil {
		t.Fatal(err)
	}
	old := newRecording()
	configMap := &object{r.Catalog.find("v1", "ConfigMap"), small, r.Objects[small]["v1 ConfigMap"]}
	old.set(configMap)
	for name, code := range map[string]int{
		"create v1 ConfigMap small":               201,
		"create v1 ConfigMap small immutable=1":   201, // which is refused
		"create v1 ConfigMap small gone=true":     201,
		"create v1 Secret small":                  500, // which was another object
		"create example.com/v1 Gone small":        500,
		"create v1 ConfigMap small metadata.name": 500, // which is no request any more
	} {
		old.keep(name, &answer{Code: code})
	}
	created, err := c.judge()
	if err != nil {
		t.Fatal(err)
	}
	a, err := created.ask(t.Context(), &request{verb: create, kind: configMap.kind, base: small}, configMap.value)
	if err != nil {
		t.Fatal(err)
	}
	old.keep("create v1 ConfigMap small", normalise(a, configMap.kind, configMap.value))
	result, err := c.changes(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	if result.total() < 2 || !result.differed["create v1 ConfigMap small immutable=1"] || result.differed["create v1 ConfigMap small"] || result.differed["create v1 Secret small"] {
		t.Errorf("of %d requests %v are answered otherwise", result.total(), result.differed)
	}
}
