package watchcache

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
)

var testForm = NewForm("test")

// TestFormIsEncodedOncePerEvent: whatever the number of watchers, and whether
// the event carries a new or a last state.
func TestFormIsEncodedOncePerEvent(t *testing.T) {
	const watchers, changes = 200, 20
	c := filled(t, Options{}, podA)
	var encodes atomic.Int64
	encode := func(o *Object) ([]byte, error) {
		encodes.Add(1)
		return append([]byte("frame "), o.JSON()...), nil
	}
	var group sync.WaitGroup
	for i := range watchers {
		var s *Selection
		if i%2 == 0 {
			s = selecting(t, "one", "", "", "")
		}
		w := watching(t, c, WatchOptions{After: 10, Selection: s})
		group.Go(func() {
			buf := make([]Event, 4)
			for seen := 0; seen < changes; {
				n, err := w.Read(buf)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range buf[:n] {
					if form, err := e.Object.Form(testForm, encode); err != nil || !strings.HasPrefix(string(form), "frame {") {
						t.Errorf("form %s, %v", form, err)
					}
				}
				if seen += n; n == 0 {
					<-w.Ready()
				}
			}
		})
	}
	for i := range changes {
		if i%2 == 0 {
			c.Apply([]Change{gone(podA.Key(), rev(11+i))})
		} else {
			c.Apply([]Change{put(t, c, podA, rev(11+i))})
		}
	}
	group.Wait()
	if got := encodes.Load(); got != changes {
		t.Errorf("%d encodes of %d events for %d watchers", got, changes, watchers)
	}
}

func TestFormErrorsAreShared(t *testing.T) {
	o, bad := &Object{}, errors.New("cannot")
	for range 2 {
		if _, err := o.Form(testForm, func(*Object) ([]byte, error) { return nil, bad }); err != bad {
			t.Errorf("error is %v", err)
		}
	}
	if testForm.String() != "test" || FormID(9999).String() != "form 9999" {
		t.Error("forms have lost their names")
	}
}

// TestFormMemoryIsCounted: made forms count as long as the cache holds the
// object, in its state or its history.
func TestFormMemoryIsCounted(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 2}, podA)
	make100 := func(*Object) ([]byte, error) { return make([]byte, 100), nil }
	o, _ := c.Current().Get(podA.Key())
	for range 2 {
		if _, err := o.Form(testForm, make100); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Stats().FormBytes; got != 100 {
		t.Errorf("counted %d bytes, want 100", got)
	}
	c.Apply([]Change{put(t, c, podA, 11), put(t, c, podB, 12)})
	if got := c.Stats().FormBytes; got != 100 {
		t.Errorf("counted %d bytes with the object in the history, want 100", got)
	}
	c.Apply([]Change{put(t, c, podB, 13)})
	if got := c.Stats().FormBytes; got != 0 {
		t.Errorf("counted %d bytes after the object has left", got)
	}
	if _, err := o.Form(NewForm("late"), make100); err != nil || c.Stats().FormBytes != 0 {
		t.Errorf("a form made of a released object is counted: %v", err)
	}
}

// TestFormsAreDroppedWithTheEvent: an object that is not written again keeps no
// forms that were made for its event, once that has been evicted.
func TestFormsAreDroppedWithTheEvent(t *testing.T) {
	id := NewForm("of the event")
	c := filled(t, Options{HistoryEvents: 2, ExactHistory: true})
	c.Apply([]Change{put(t, c, podA, 11)})
	o, _ := c.Current().Get(podA.Key())
	made := 0
	encode := func(*Object) ([]byte, error) { made++; return []byte("twelve bytes"), nil }
	for _, change := range []Change{put(t, c, podB, 12), put(t, c, podB, 13)} {
		if _, err := o.Form(id, encode); err != nil || made != 1 || c.Stats().FormBytes != 12 {
			t.Fatalf("made %d times, %d bytes are counted, error %v", made, c.Stats().FormBytes, err)
		}
		c.Apply([]Change{change})
	}
	if now, _ := c.Current().Get(podA.Key()); now != o || o.HasForm(id, 0) || c.Stats().FormBytes != 0 {
		t.Errorf("the form is held: %v, and counted with %d bytes", o.HasForm(id, 0), c.Stats().FormBytes)
	}
	if _, err := o.Form(id, encode); err != nil || made != 2 || c.Stats().FormBytes != 12 {
		t.Errorf("made %d times, %d bytes are counted, error %v", made, c.Stats().FormBytes, err)
	}
}

func TestObjectsMustCarryTheirRevisionInFront(t *testing.T) {
	for json, want := range map[string]bool{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a"}}`:  true,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"77","name":"a"}}`: false,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}`:  false,
		`{"metadata":{"resourceVersion":"7`:                                               false,
		``:                                                                                false,
	} {
		o, err := NewObject("a", 7, resource.Attributes{Name: "a"}, []byte(json))
		if (err == nil) != want {
			t.Errorf("%s: %v", json, err)
		}
		if err == nil && string(o.AtRevision(1234).JSON()) != strings.Replace(json, `"7"`, `"1234"`, 1) {
			t.Errorf("moved to 1234: %s", o.AtRevision(1234).JSON())
		}
	}
}

func ExampleNewForm() {
	shout := NewForm("shout")
	o := NewUnversioned("", 0, resource.Attributes{}, []byte("hello"))
	for range 2 {
		form, _ := o.Form(shout, func(o *Object) ([]byte, error) {
			fmt.Println("encoding")
			return []byte(strings.ToUpper(string(o.JSON()))), nil
		})
		fmt.Println(string(form))
	}
	// Output:
	// encoding
	// HELLO
	// HELLO
}

// TestLateLastStateIsNotCounted: a reader that holds an entry while it is evicted
// still gets the last state, but its forms are not counted.
func TestLateLastStateIsNotCounted(t *testing.T) {
	id := NewForm("late")
	encode := func(*Object) ([]byte, error) { return []byte("twelve bytes"), nil }
	c := filled(t, Options{HistoryEvents: 1, ExactHistory: true}, podA)
	c.Apply([]Change{gone(podA.Key(), 11)})
	held := c.log.At(c.log.Oldest())
	c.Apply([]Change{put(t, c, podB, 12)})
	if _, err := held.LastState(c.formBytes.Load()).Form(id, encode); err != nil {
		t.Fatal(err)
	}
	if got := c.Stats().FormBytes; got != 0 {
		t.Errorf("%d bytes are counted for ever", got)
	}
}
