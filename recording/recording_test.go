package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/levelwire/levelwire/recording"
)

// began is when the recordings of these tests begin.
var began = time.Unix(1_800_000_000, 5)

// sample writes a recording of changes to a few hundred objects, and returns what was
// written, and the state after each revision.
type sample struct {
	data    *memoryFile
	entries []recording.Entry
	states  map[int64]map[string]recording.Object
}

func newSample(t testing.TB, events int, opts recording.WriterOptions) *sample {
	t.Helper()
	s := &sample{data: new(memoryFile), states: map[int64]map[string]recording.Object{}}
	w, err := recording.NewWriter(s.data, recording.Info{Server: "https://one", Started: began}, opts)
	check(t, err)
	for _, name := range []string{"pods", "services"} {
		_, err := w.AddResource(recording.Resource{Version: "v1", Resource: name, Kind: name, Namespaced: true})
		check(t, err)
	}
	state := map[string]recording.Object{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		o := recording.Object{Resource: i % 2, Revision: int64(i + 1), Created: 1, Key: fmt.Sprintf("default/%d", i), Value: body(random, i)}
		check(t, w.State(o))
		state[name(o.Resource, o.Key)] = o
	}
	check(t, w.EndState(100, began))
	s.states[100] = maps.Clone(state)
	for i := range events {
		o := recording.Object{Resource: i % 2, Revision: int64(101 + i), Key: fmt.Sprintf("default/%d", random.IntN(300))}
		e := recording.Entry{Type: recording.Set, Resource: o.Resource, Time: began.Add(time.Duration(i) * time.Millisecond), Revision: o.Revision, Key: o.Key}
		before, exists := state[name(o.Resource, o.Key)]
		switch {
		case exists && random.IntN(3) == 0:
			e.Type = recording.Delete
			delete(state, name(o.Resource, o.Key))
		default:
			o.Created = before.Created
			if !exists {
				o.Created = o.Revision
			}
			o.Value = body(random, i)
			e.Value, e.Created = o.Value, o.Created
			state[name(o.Resource, o.Key)] = o
		}
		check(t, w.Event(e))
		s.entries = append(s.entries, e)
		s.states[e.Revision] = maps.Clone(state)
	}
	check(t, w.Close())
	return s
}

func name(resource int, key string) string { return fmt.Sprint(resource, " ", key) }

func body(random *rand.Rand, i int) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","n":%d,"filler":"%x"}`, i, random.Uint64())
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memoryFile is a recording.File.
type memoryFile struct{ data []byte }

func (f *memoryFile) Write(p []byte) (int, error) {
	f.data = append(f.data, p...)
	return len(p), nil
}

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, at)
}

func open(t testing.TB, data []byte) *recording.Reader {
	t.Helper()
	r, err := recording.NewReader(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	return r
}

// read returns the entries after a revision and the error at their end.
func read(r *recording.Reader, after int64) (entries []recording.Entry, err error) {
	for c := r.After(after); ; {
		e, err := c.Next()
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
}

// stateAt rebuilds the state at a revision.
func stateAt(t *testing.T, r *recording.Reader, at int64) map[string]recording.Object {
	t.Helper()
	state := map[string]recording.Object{}
	from, err := r.Checkpoint(at, func(o recording.Object) error {
		state[name(o.Resource, o.Key)] = o
		return nil
	})
	check(t, err)
	entries, _ := read(r, from)
	for _, e := range entries {
		if e.Revision > at {
			break
		}
		if e.Type == recording.Delete {
			delete(state, name(e.Resource, e.Key))
			continue
		}
		state[name(e.Resource, e.Key)] = recording.Object{Resource: e.Resource, Revision: e.Revision, Created: e.Created, Key: e.Key, Value: e.Value}
	}
	return state
}

// TestEntriesComeBack reads what was written, from each of many revisions.
func TestEntriesComeBack(t *testing.T) {
	s := newSample(t, 3000, recording.WriterOptions{CheckpointBytes: 32 << 10})
	r := open(t, s.data.data)
	if r.Damage() != nil || r.Check() != nil {
		t.Fatal("a recording that was closed is damaged:", r.Damage(), r.Check())
	}
	if start, at := r.Start(); start != 100 || !at.Equal(began) {
		t.Error("it starts at", start, at)
	}
	if end, _ := r.End(); end != 3100 || r.Entries() != 3000 || r.Info().Server != "https://one" || len(r.Resources()) != 2 {
		t.Error("it ends at", end, "with", r.Entries(), "entries and", r.Resources(), r.Info())
	}
	for _, after := range []int64{0, 100, 101, 555, 1700, 3099, 3100} {
		entries, err := read(r, after)
		want := s.entries[max(0, after-100):]
		if err != io.EOF || len(entries) != len(want) {
			t.Fatalf("after %d: %d entries instead of %d: %v", after, len(entries), len(want), err)
		}
		for i := range want {
			if !entries[i].Time.Equal(want[i].Time) {
				t.Fatalf("entry %d is of %s, not of %s", i, entries[i].Time, want[i].Time)
			}
			entries[i].Time = want[i].Time
			if !reflect.DeepEqual(entries[i], want[i]) {
				t.Fatalf("entry %d is %+v, not %+v", i, entries[i], want[i])
			}
		}
	}
}

// TestStateFromCheckpoints compares states that are rebuilt from the nearest
// checkpoint with what they were.
func TestStateFromCheckpoints(t *testing.T) {
	s := newSample(t, 3000, recording.WriterOptions{CheckpointBytes: 32 << 10})
	r := open(t, s.data.data)
	checkpoints := map[int64]bool{}
	for at := int64(100); at <= 3100; at += 97 {
		from, err := r.Checkpoint(at, func(recording.Object) error { return nil })
		check(t, err)
		checkpoints[from] = true
		if got := stateAt(t, r, at); !reflect.DeepEqual(got, s.states[at]) {
			t.Fatalf("at %d there are %d objects instead of %d, or others", at, len(got), len(s.states[at]))
		}
	}
	if len(checkpoints) < 3 {
		t.Error("there are only", len(checkpoints), "checkpoints")
	}
	if _, err := r.Checkpoint(99, nil); err == nil {
		t.Error("there is a state before the start")
	}
}

// TestCutOff cuts a recording everywhere: what is before the cut is read.
func TestCutOff(t *testing.T) {
	s := newSample(t, 300, recording.WriterOptions{CheckpointBytes: 8 << 10})
	whole := s.data.data
	last := -1
	for length := len(whole) - 1; length > 0; length -= 31 {
		r, err := recording.NewReader(bytes.NewReader(whole[:length]), int64(length))
		if err != nil {
			if length > len(whole)/2 {
				t.Fatalf("cut at %d of %d: %v", length, len(whole), err)
			}
			continue
		}
		entries, err := read(r, 0)
		damage := r.Damage()
		if damage == nil || damage.Offset > int64(length) {
			t.Fatalf("cut at %d: the damage is %v", length, damage)
		}
		if err != io.EOF && !errors.As(err, &damage) {
			t.Fatalf("cut at %d: reading ended with %v", length, err)
		}
		if last >= 0 && len(entries) > last {
			t.Fatalf("cut at %d there are %d entries, and fewer in a longer file", length, len(entries))
		}
		last = len(entries)
		for i, e := range entries {
			if e.Key != s.entries[i].Key {
				t.Fatalf("cut at %d: entry %d is %+v", length, i, e)
			}
		}
		check(t, r.Close())
	}
}

// TestDamageSaysWhere flips a byte of a block in the middle.
func TestDamageSaysWhere(t *testing.T) {
	s := newSample(t, 3000, recording.WriterOptions{CheckpointBytes: 32 << 10})
	at := len(s.data.data) / 2
	s.data.data[at] ^= 0xff
	for name, data := range map[string][]byte{"with an index": s.data.data, "without": s.data.data[:len(s.data.data)-4]} {
		r := open(t, data)
		var damage *recording.DamageError
		if err := r.Check(); !errors.As(err, &damage) || damage.Offset > int64(at) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := read(r, 0); name == "without" && !errors.As(err, &damage) {
			t.Errorf("%s: reading ended with %v", name, err)
		}
	}
}

// TestLateEntries writes an entry after one with a greater revision.
func TestLateEntries(t *testing.T) {
	file := new(memoryFile)
	w, err := recording.NewWriter(file, recording.Info{}, recording.WriterOptions{})
	check(t, err)
	_, err = w.AddResource(recording.Resource{Resource: "pods"})
	check(t, err)
	check(t, w.EndState(10, began))
	for _, revision := range []int64{11, 14, 12, 15} {
		check(t, w.Event(recording.Entry{Type: recording.Set, Time: began, Revision: revision, Created: revision, Key: fmt.Sprint(revision), Value: []byte("{}")}))
	}
	check(t, w.Close())
	entries, err := read(open(t, file.data), 0)
	if err != io.EOF || len(entries) != 4 || !entries[2].Late || entries[2].Revision != 14 || entries[3].Late {
		t.Errorf("%+v %v", entries, err)
	}
}

// TestWrongFiles opens files that are no recordings.
func TestWrongFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, data := range []string{"", "LWRECORD", "\x00\x00\x00", "apiVersion: v1\nkind: Pod\n"} {
		check(t, os.WriteFile(path, []byte(data), 0o600))
		if _, err := recording.Open(path); err == nil {
			t.Errorf("%q is a recording", data)
		}
		if is, err := recording.IsRecording(path); is || err != nil {
			t.Errorf("%q: %v %v", data, is, err)
		}
	}
	if _, err := recording.Create(path, recording.Info{}, recording.WriterOptions{}); !os.IsExist(err) {
		t.Error("a file was replaced:", err)
	}
}

// FuzzReader reads anything.
func FuzzReader(f *testing.F) {
	s := newSample(f, 20, recording.WriterOptions{CheckpointBytes: 1 << 10})
	f.Add(s.data.data)
	f.Add(s.data.data[:len(s.data.data)-40])
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := recording.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		_ = r.Check()
		_, _ = read(r, 0)
		_, _ = r.Checkpoint(1<<62, func(recording.Object) error { return nil })
		check(t, r.Close())
	})
}
