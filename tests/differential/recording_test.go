package differential

import (
	"path/filepath"
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
	r.Full[k.String()] = o.value
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
	if read.Full[k.String()] == nil {
		t.Error("the full object is lost")
	}
	changed, err := edit{path{"spec", "size"}, "2"}.apply(o.value)
	if err != nil {
		t.Fatal(err)
	}
	read.use(&object{o.kind, small, changed})
	if got := read.answer(name); got != nil || len(read.Full) > 0 {
		t.Errorf("the answer about another object stays: %v, %v", got, read.Full)
	}
	if read.answer(ofMore) == nil {
		t.Error("the answer about the object that did not change is lost")
	}
	read.use(&object{o.kind, more, changed})
	if read.answer(ofMore) != nil {
		t.Error("the answer about another object of more stays")
	}
}
