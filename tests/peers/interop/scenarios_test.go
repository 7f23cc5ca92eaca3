package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An arrangement is what a scenario is played with: a server, a namespace of
// its own, a way to write, and a way to make the informer under test.
type arrangement struct {
	ctx     context.Context
	writer  *writer
	tap     *tap
	subject func(change func(*settings)) subject
}

// scenarios are all scenarios by name.
var scenarios = map[string]func(t *testing.T, a arrangement){
	"every state in order":     everyState,
	"what was there before":    initialList,
	"late handlers":            lateHandlers,
	"removed handlers":         removedHandlers,
	"resync":                   resync,
	"label selector":           labelSelector,
	"field selector":           fieldSelector,
	"watches that time out":    watchTimeouts,
	"many objects, many steps": manyObjects,
}

func asIs(*settings) {}

func everyState(t *testing.T, a arrangement) {
	r := newRecorder()
	s := a.subject(asIs)
	s.handle(t, r, 0)
	s.start(t)
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	w := a.writer
	w.create("a", "1", "x")
	w.create("b", "1", "x")
	w.update("a", "2", "")
	w.phase("a", corev1.PodRunning)
	w.update("a", "3", "y")
	w.update("b", "2", "")
	w.delete("a")
	w.create("a", "4", "x")
	w.delete("b")

	r.expect(a.ctx, t, "a",
		"add 1 x Pending",
		"update 1 x Pending > 2 x Pending",
		"update 2 x Pending > 2 x Running",
		"update 2 x Running > 3 y Running",
		"update 3 y Running > 3 y Running ending",
		"delete 3 y Running ending",
		"add 4 x Pending")
	r.expect(a.ctx, t, "b",
		"add 1 x Pending",
		"update 1 x Pending > 2 x Pending",
		"update 2 x Pending > 2 x Pending ending",
		"delete 2 x Pending ending")
	r.check(t)
	w.sameAsServer(s, metav1.ListOptions{})
	if x, y := s.byApp(t, "x"), s.byApp(t, "y"); !slices.Equal(x, []string{"a"}) || len(y) != 0 {
		t.Errorf("the index has %v for x and %v for y, want [a] and nothing", x, y)
	}
}

func initialList(t *testing.T, a arrangement) {
	w := a.writer
	w.create("a", "1", "x")
	w.create("b", "1", "x")
	w.create("gone", "1", "x")
	w.update("b", "2", "")
	w.delete("gone")
	w.visible()
	r := newRecorder()
	s := a.subject(asIs)
	s.handle(t, r, 0)
	s.start(t)
	r.expect(a.ctx, t, "a", "initial 1 x Pending")
	r.expect(a.ctx, t, "b", "initial 2 x Pending")
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	w.update("a", "2", "")
	r.expect(a.ctx, t, "a", "initial 1 x Pending", "update 1 x Pending > 2 x Pending")
	if notes := r.of("gone"); len(notes) > 0 {
		t.Errorf("the handler got an event of an object that was gone before: %v", notes)
	}
	r.check(t)
	w.sameAsServer(s, metav1.ListOptions{})
	if got := a.tap.stats().lists; got != 1 {
		t.Errorf("%d lists, want 1", got)
	}
}

func lateHandlers(t *testing.T, a arrangement) {
	w := a.writer
	early, late := newRecorder(), newRecorder()
	s := a.subject(asIs)
	s.handle(t, early, 0)
	s.start(t)
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	w.create("a", "1", "x")
	w.update("a", "2", "")
	w.create("b", "1", "x")
	w.delete("b")
	early.expect(a.ctx, t, "a", "add 1 x Pending", "update 1 x Pending > 2 x Pending")
	early.expect(a.ctx, t, "b", "add 1 x Pending", "update 1 x Pending > 1 x Pending ending", "delete 1 x Pending ending")

	s.handle(t, late, 0)
	late.expect(a.ctx, t, "a", "initial 2 x Pending")
	w.update("a", "3", "")
	w.create("c", "1", "x")
	late.expect(a.ctx, t, "a", "initial 2 x Pending", "update 2 x Pending > 3 x Pending")
	late.expect(a.ctx, t, "c", "add 1 x Pending")
	early.expect(a.ctx, t, "c", "add 1 x Pending")
	if notes := late.of("b"); len(notes) > 0 {
		t.Errorf("the late handler got an event of an object that was gone: %v", notes)
	}
	early.check(t)
	late.check(t)
}

func removedHandlers(t *testing.T, a arrangement) {
	w := a.writer
	stays, goes := newRecorder(), newRecorder()
	s := a.subject(asIs)
	s.handle(t, stays, 0)
	remove := s.handle(t, goes, 0)
	s.start(t)
	w.create("a", "1", "x")
	first := func() bool { return len(goes.of("a")) == 1 }
	goes.until(a.ctx, t, "the first event", first)
	remove()
	w.create("b", "1", "x")
	stays.until(a.ctx, t, "what comes after the removal", func() bool { return len(stays.of("b")) == 1 })
	if notes := goes.of("b"); len(notes) > 0 {
		t.Errorf("a removed handler got events: %v", notes)
	}
}

// resync gives one of two handlers everything again each second, which is the
// shortest period that client-go knows.
func resync(t *testing.T, a arrangement) {
	w := a.writer
	w.create("a", "1", "x")
	w.visible()
	again, once := newRecorder(), newRecorder()
	s := a.subject(func(s *settings) { s.resync = time.Second })
	s.handle(t, again, time.Second)
	s.handle(t, once, 0)
	s.start(t)
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	again.until(a.ctx, t, "a resync", func() bool { return slices.Contains(again.of("a"), "resync 1 x Pending") })
	w.update("a", "2", "")
	again.until(a.ctx, t, "a resync of the new state", func() bool {
		return slices.Contains(again.of("a"), "resync 2 x Pending")
	})
	again.check(t)
	once.expect(a.ctx, t, "a", "initial 1 x Pending", "update 1 x Pending > 2 x Pending")
	want := []string{"initial 1 x Pending", "resync 1 x Pending", "update 1 x Pending > 2 x Pending", "resync 2 x Pending"}
	if got := slices.Compact(again.of("a")); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func labelSelector(t *testing.T, a arrangement) {
	w := a.writer
	w.create("in", "1", "x")
	w.create("out", "1", "y")
	w.visible()
	r := newRecorder()
	s := a.subject(func(s *settings) { s.labelSelector = "app=x" })
	s.handle(t, r, 0)
	s.start(t)
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	w.update("out", "2", "")
	w.update("out", "3", "x") // comes in
	w.update("out", "4", "")
	w.update("out", "5", "y") // leaves: the handler last sees the state it had
	w.update("out", "6", "")
	w.update("in", "2", "y")
	w.update("in", "3", "x")
	w.delete("in")
	w.delete("out")

	r.expect(a.ctx, t, "in",
		"initial 1 x Pending",
		"delete 1 x Pending",
		"add 3 x Pending",
		"update 3 x Pending > 3 x Pending ending",
		"delete 3 x Pending ending")
	r.expect(a.ctx, t, "out",
		"add 3 x Pending",
		"update 3 x Pending > 4 x Pending",
		"delete 4 x Pending")
	r.check(t)
	w.sameAsServer(s, metav1.ListOptions{LabelSelector: "app=x"})
}

func fieldSelector(t *testing.T, a arrangement) {
	w := a.writer
	w.create("a", "1", "x")
	w.create("b", "1", "x")
	w.visible()
	r := newRecorder()
	const running = "status.phase=Running"
	s := a.subject(func(s *settings) { s.fieldSelector = running })
	s.handle(t, r, 0)
	s.start(t)
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	w.phase("a", corev1.PodRunning)
	w.update("a", "2", "")
	w.phase("a", corev1.PodSucceeded)
	w.phase("b", corev1.PodRunning)

	r.expect(a.ctx, t, "a", "add 1 x Running", "update 1 x Running > 2 x Running", "delete 2 x Running")
	r.expect(a.ctx, t, "b", "add 1 x Running")
	r.check(t)
	w.sameAsServer(s, metav1.ListOptions{FieldSelector: running})
}

// watchTimeouts has the server end each watch after a second: the informer
// opens the next where it was, lists no second time, and misses nothing.
func watchTimeouts(t *testing.T, a arrangement) {
	w := a.writer
	r := newRecorder()
	a.tap.watchSeconds = "1"
	s := a.subject(asIs)
	s.handle(t, r, 0)
	s.start(t)
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	w.create("a", "0", "x")
	want := []string{"add 0 x Pending"}
	for step := range 3 {
		opened := a.tap.stats().watches
		for a.tap.stats().watches == opened {
			select {
			case <-a.tap.changed:
			case <-a.ctx.Done():
				t.Fatalf("no new watch; the tap saw %+v", a.tap.stats())
			}
		}
		w.update("a", fmt.Sprint(step+1), "")
		want = append(want, fmt.Sprintf("update %d x Pending > %d x Pending", step, step+1))
	}
	r.expect(a.ctx, t, "a", want...)
	r.check(t)
	if stats := a.tap.stats(); stats.lists != 1 {
		t.Errorf("%d lists, want 1: %+v", stats.lists, stats)
	}
}

// manyObjects writes without waiting; handlers get every state of every object.
func manyObjects(t *testing.T, a arrangement) {
	const objects, steps = 20, 5
	r := newRecorder()
	s := a.subject(asIs)
	s.handle(t, r, 0)
	s.start(t)
	name := func(i int) string { return fmt.Sprintf("pod-%02d", i) }
	for i := range objects / 2 {
		a.writer.create(name(i), "0", "x")
	}
	if !s.waitSync(a.ctx) {
		t.Fatal("no sync")
	}
	for i := objects / 2; i < objects; i++ {
		a.writer.create(name(i), "0", "x")
	}
	for step := range steps {
		for i := range objects {
			a.writer.update(name(i), fmt.Sprint(step+1), "")
		}
	}
	for i := range objects {
		last := fmt.Sprintf("update %d x Pending > %d x Pending", steps-1, steps)
		r.until(a.ctx, t, last, func() bool { return slices.Contains(r.of(name(i)), last) })
		got := r.of(name(i))
		if len(got) != steps+1 {
			t.Errorf("%s: %d calls, want %d: %v", name(i), len(got), steps+1, got)
		}
	}
	r.check(t)
	a.writer.sameAsServer(s, metav1.ListOptions{})
}
