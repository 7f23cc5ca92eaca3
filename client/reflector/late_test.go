package reflector

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// Events that are older than what the store has reached are judged by what it holds of
// their objects.
func TestEventsFromThePast(t *testing.T) {
	stale := func(n int64) func(*testing.T, *script, Stats) {
		return func(t *testing.T, _ *script, s Stats) {
			t.Helper()
			if s.Stale != n {
				t.Errorf("%d stale events, want %d", s.Stale, n)
			}
		}
	}
	begin := "ADDED a 10,ADDED b 11,END 20,MODIFIED b 30,"
	for _, sc := range []scenario{
		{name: "a deletion at the version of the last change", steps: []step{{"stream", events(begin+"DELETED a 10,ADDED c 40", hold)}},
			store: "b:30 c:40", version: "40", check: stale(0)},
		{name: "a deletion at a version in between", steps: []step{{"stream", events(begin+"DELETED a 25", hold)}},
			store: "b:30", version: "30", check: stale(0)},
		{name: "a deletion of what was changed in this watch", steps: []step{{"stream", events(begin+"ADDED c 35,DELETED b 30", hold)}},
			store: "a:10 c:35", version: "35", check: stale(0)},
		{name: "a deletion of a state before the last one", steps: []step{{"stream", events(begin+"MODIFIED a 35,DELETED a 10,DELETED a 34", hold)}},
			store: "a:35 b:30", version: "35", check: stale(2)},
		{name: "a deletion of what is deleted", steps: []step{{"stream", events(begin+"DELETED a 31,DELETED a 10", hold)}},
			store: "b:30", version: "31", check: stale(1)},
		{name: "a deletion of what was made again", steps: []step{{"stream", events(begin+"DELETED a 31,ADDED a 32,DELETED a 31,DELETED a 10", hold)}},
			store: "a:32 b:30", version: "32", check: stale(2)},
		{name: "a deletion without a version", steps: []step{{"stream", events(begin+"DELETED a -", hold)}}, store: "b:30", version: "30", check: stale(0)},
		{name: "changes of different objects that are not in order", steps: []step{{"stream", events(begin+"MODIFIED a 25,ADDED a 26", hold)}},
			store: "a:26 b:30", version: "30", check: stale(0)},
		{name: "a state that is known, and older ones", steps: []step{{"stream", events(begin+"MODIFIED a 10,ADDED a 10,MODIFIED a 9", hold)}},
			store: "a:10 b:30", version: "30", check: stale(3)},
		{name: "objects that are not held", steps: []step{{"stream", events(begin+"ADDED c 25,MODIFIED d 26,MODIFIED c 2,DELETED d 26,ADDED e 4", hold)}},
			store: "a:10 b:30 c:25 e:4", version: "30", check: stale(1)},
		{name: "in a watch that resumes", steps: []step{{"stream", events(begin, after(time.Minute, end))}, {"watch 30", events("ADDED c 25,MODIFIED a 12", hold)}},
			resumes: map[ResumeReason]int64{ResumeEnded: 1}, store: "a:12 b:30 c:25", version: "30", check: stale(0)},
		{name: "what was deleted, once more", steps: []step{{"stream", events(begin+"ADDED c 31,DELETED c 32,DELETED a 33,ADDED c 31,MODIFIED a 10", hold)}},
			store: "b:30", version: "33", check: stale(2)},
		{name: "after a deletion that was late", steps: []step{{"stream", events(begin+"DELETED a 12,ADDED a 10,MODIFIED a 12,MODIFIED a 13", hold)}},
			store: "a:13 b:30", version: "30", check: stale(2)},
		{name: "after a deletion without a version", steps: []step{{"stream", events(begin+"DELETED a -,ADDED a 10", hold)}},
			store: "b:30", version: "30", check: stale(1)},
		{name: "after a list", steps: []step{{"stream", events(begin+"DELETED a 31,ERROR 410", end)}, {"stream", events("ADDED b 30,END 40,ADDED a 10,ADDED c 11", hold)}},
			lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1}, store: "b:30 c:11", version: "40", check: stale(1)},
		{name: "the UID of what was deleted", steps: []step{{"stream", events(begin+"ADDED c/1 31,DELETED c/1 32,MODIFIED c/1 31", hold)}},
			store: "a:10 b:30", version: "32", check: stale(1)},
		{name: "another UID than that of what was deleted", steps: []step{{"stream", events(begin+"ADDED c/1 31,DELETED c/1 32,ADDED c/2 1,MODIFIED c/2 2", hold)}},
			store: "a:10 b:30 c:2", version: "32", check: stale(0)},
		{name: "in pages", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("20", "a 10", "b 11")}, {"watch 20", events("DELETED a 10,BOOKMARK 40", hold)}},
			store: "b:11", version: "40", check: stale(0)},
		{name: "in answers to polls", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{{"list 0", list("20", "a 10", "b 11")}, {"watch 20", events("ADDED c 30,DELETED a 10,BOOKMARK 40", after(10*time.Second, end))}, {"watch 40", hold}},
			store: "b:11 c:30", version: "40", check: stale(0)},
		{name: "filtered objects that become visible", opts: Options{Filtered: true},
			steps: []step{{"stream", events(begin+"ADDED c 2,DELETED a 10", hold)}}, store: "b:30 c:2", version: "30", check: stale(0)},
	} {
		sc.getter = true
		sc.play(t)
	}
	scenario{name: "a store that cannot say what it holds", lists: map[ListCause]int64{ListInitial: 1, ListRewound: 1},
		steps: []step{{"stream", events(begin+"DELETED a 10", hold)}, {"stream", events("ADDED b 30,END 31", hold)}},
		store: "b:30", version: "31", check: stale(1)}.play(t)
}

// Servers with a storage of their own do not order the versions of different objects. Under a
// selector, an object with one UID may be deleted and added more than once.
func TestLateEventsOfAnObjectThatComesBack(t *testing.T) {
	begin := "ADDED a/u 10,ADDED b 50,END 50,DELETED a/u 12,"
	for name, test := range map[string]struct{ events, store string }{
		"it matches again":          {"ADDED a/u 13", "a:13 b:50"},
		"its deletion once more":    {"ADDED a/u 13,DELETED a/u 12", "a:13 b:50"},
		"and is deleted again":      {"ADDED a/u 13,DELETED a/u 14", "b:50"},
		"what was before":           {"ADDED a/u 10,MODIFIED a/u 11", "b:50"},
		"a change after it":         {"MODIFIED a/u 13", "b:50"}, // not of an object that has gone for good
		"a state of that version":   {"ADDED a/u 12", "b:50"},
		"another object, older too": {"ADDED a/v 11", "a:11 b:50"},
	} {
		scenario{name: name, getter: true, any: true, steps: []step{{"stream", events(begin+test.events, hold)}}, store: test.store, version: "50"}.play(t)
	}
}

// Where the version of what the store holds says nothing, a deletion from the past may be
// one of it: a list shows that.
func TestLateDeletionsOfWhatHasNoVersion(t *testing.T) {
	for _, held := range []string{"-", "abc", "0"} {
		scenario{name: held, getter: true, opts: Options{PagedList: true}, lists: map[ListCause]int64{ListInitial: 1, ListRewound: 1},
			steps: []step{{"list 0", list("20", "a "+held, "b 11")}, {"watch 20", events("MODIFIED b 30,MODIFIED a 5,DELETED a 10", hold)},
				{"list -", list("31", "b 30")}, {"watch 31", hold}},
			store: "b:30", version: "31"}.play(t)
	}
}

// What a Reflector knows of deletions is bounded, and the latest are known.
func TestDeletionsAreBounded(t *testing.T) {
	var d deletions[*corev1.ConfigMap]
	d.note(configMap("again", "1"), "")
	for n := range 10 * maxDeletions {
		d.note(configMap(fmt.Sprint("c", n), "5"), "")
		if n%(maxDeletions-10) == 0 {
			d.note(configMap("again", "5"), "")
		}
		if !d.has(identityOf(configMap("again", "1")), false) {
			t.Fatalf("it is forgotten after %d others that an object was deleted before and among them", n)
		}
	}
	if len(d.of) > maxDeletions || len(d.ring) != maxDeletions {
		t.Errorf("%d deletions are held, in a ring of %d", len(d.of), len(d.ring))
	}
	for n := range 10 * maxDeletions {
		if got, want := d.has(identityOf(configMap(fmt.Sprint("c", n), "4")), true), n > 9*maxDeletions; got != want {
			t.Errorf("deletion %d: known %v", n, got)
		}
	}
	if d.has(identityOf(configMap("again", "6")), true) || d.has(identityOf(configMap("never", "5")), true) {
		t.Error("an object is known as deleted that is not")
	}
}

// dropperMirror is a getterMirror that says what a list lacks.
type dropperMirror struct {
	getterMirror
	dropped *func(*corev1.ConfigMap)
}

func (m dropperMirror) OnDrop(dropped func(*corev1.ConfigMap)) { *m.dropped = dropped }

func (m dropperMirror) Replace(list []*corev1.ConfigMap, version string) error {
	kept := map[string]bool{}
	for _, obj := range list {
		kept[obj.Name] = true
	}
	m.mu.Lock()
	before := maps.Clone(m.objects)
	m.mu.Unlock()
	for name, version := range before {
		if obj := configMap(name, version); !kept[name] {
			obj.Namespace, obj.UID = "ns", "u"
			(*m.dropped)(obj)
		}
	}
	return m.mirror.Replace(list, version)
}

// What a list lacks is known as deleted before it, as what was deleted by an event is.
func TestEventsFromBeforeAList(t *testing.T) {
	expired := map[ListCause]int64{ListInitial: 1, ListExpired: 1}
	for name, test := range map[string]struct{ events, store, version string }{
		"a change of what it lacks":       {"MODIFIED a/u 10,MODIFIED a 30", "b:11", "50"},
		"what it lacks, added once more":  {"ADDED a/u 10,ADDED a 49", "b:11", "50"},
		"what it lacks, made again":       {"ADDED a 51", "a:51 b:11", "51"},
		"another object of that name":     {"ADDED a/v 10", "a:10 b:11", "50"},
		"an object that was never there":  {"ADDED c 10", "b:11 c:10", "50"},
		"an end of what it lacks":         {"DELETED a 30,MODIFIED a 10", "b:11", "50"},
		"made again, and changed earlier": {"ADDED a 51,MODIFIED a 10", "a:51 b:11", "51"},
	} {
		scenario{name: name, dropper: true, lists: expired, store: test.store, version: test.version, steps: []step{
			{"stream", events("ADDED a/u 10,ADDED b 11,END 20,ERROR 410", end)}, {"stream", events("ADDED b 11,END 50,"+test.events, hold)}}}.play(t)
	}
	scenario{name: "a server that went back", dropper: true, lists: map[ListCause]int64{ListInitial: 1, ListRewound: 1}, store: "a:12 b:11", version: "13", steps: []step{
		{"stream", events("ADDED a 10,ADDED b 11,END 20,DELETED a 25,BOOKMARK 9", hold)}, {"stream", events("ADDED b 11,END 13,ADDED a 12", hold)}}}.play(t)
}

// An event of an object that may have been deleted longer ago than is remembered is followed by
// a list, and the second time it is known.
func TestEventsOfWhatWasDeletedLongAgo(t *testing.T) {
	var many strings.Builder
	for n := range maxDeletions + 44 {
		fmt.Fprintf(&many, "ADDED c%d %d,DELETED c%d %d,", n, 100+2*n, n, 101+2*n)
	}
	const forgotten, last = 43, 2*(maxDeletions+43) + 101
	end := fmt.Sprintf("ADDED a 10,END %d", last)
	rewound := map[ListCause]int64{ListInitial: 1, ListRewound: 1}
	for name, old := range map[string]string{
		"a change":         fmt.Sprintf("MODIFIED c%d %d", forgotten, 100+2*forgotten),
		"it is added":      fmt.Sprintf("ADDED c%d %d", forgotten, 100+2*forgotten),
		"the oldest":       "ADDED c0 100",
		"before all lists": "MODIFIED z 2",
	} {
		scenario{name: name, dropper: true, lists: rewound, store: "a:10", version: fmt.Sprint(last), steps: []step{
			{"stream", events("ADDED a 10,END 20,"+many.String()+old, hold)}, {"stream", events(end+","+old+","+old, hold)}}}.play(t)
	}
	scenario{name: "a new object", dropper: true, lists: rewound, store: "a:10 n:50", version: fmt.Sprint(last), steps: []step{
		{"stream", events("ADDED a 10,END 20,"+many.String()+"ADDED n 50", hold)}, {"stream", events(end[:len("ADDED a 10,")]+"ADDED n 50,"+end[len("ADDED a 10,"):], hold)}}}.play(t)
	scenario{name: "a new object that is newer than what is forgotten", dropper: true, store: fmt.Sprintf("a:10 n:%d", last-20), version: fmt.Sprint(last), steps: []step{
		{"stream", events(fmt.Sprintf("ADDED a 10,END 20,%sADDED n %d", many.String(), last-20), hold)}}}.play(t)
	scenario{name: "one that is remembered", dropper: true, store: "a:10", version: fmt.Sprint(last), steps: []step{
		{"stream", events(fmt.Sprintf("ADDED a 10,END 20,%sADDED c60 220,DELETED c1 102", many.String()), hold)}}}.play(t)
}

// sharedMirror is a getterMirror to which others write.
type sharedMirror struct {
	getterMirror
	others func(*mirror)
}

func (m sharedMirror) WriteIf(ev client.WatchEvent[*corev1.ConfigMap], may func(*corev1.ConfigMap, bool) bool) error {
	m.others(m.mirror)
	switch {
	case !may(m.Get(ev.Object)):
		return nil
	case ev.Type == watch.Deleted:
		return m.Delete(ev.Object)
	default:
		return m.put(ev.Object)
	}
}

// Where others write to the store, an event from the past is judged by what it holds when it is written.
func TestLateEventsInASharedStore(t *testing.T) {
	nothing := func(*mirror) {}
	later := func(m *mirror) { _ = m.put(configMap("a", "26")) }
	gone := func(m *mirror) { _ = m.Delete(configMap("a", "")) }
	for name, test := range map[string]struct {
		others        func(*mirror)
		events, store string
		stale         int64
	}{
		"nothing else is written":   {nothing, "MODIFIED a 25,ADDED c 12", "a:25 b:30 c:12", 0},
		"a deletion":                {nothing, "DELETED a 25,ADDED a 10", "b:30", 1},
		"a later state":             {later, "MODIFIED a 25", "a:26 b:30", 1},
		"one before a deletion":     {later, "DELETED a 25", "a:26 b:30", 1},
		"one, and a state after it": {later, "MODIFIED a 27", "a:27 b:30", 0},
		"the deletion":              {gone, "DELETED a 25", "b:30", 1},
	} {
		scenario{name: name, others: test.others, steps: []step{{"stream", events("ADDED a 10,ADDED b 11,END 20,MODIFIED b 30,"+test.events, hold)}},
			store: test.store, version: "30", check: func(t *testing.T, _ *script, s Stats) {
				t.Helper()
				if s.Stale != test.stale {
					t.Errorf("%d stale events, want %d", s.Stale, test.stale)
				}
			}}.play(t)
	}
}
