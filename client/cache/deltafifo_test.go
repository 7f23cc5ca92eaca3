package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func pod(name string, uid, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(fmt.Sprint(uid)), ResourceVersion: fmt.Sprint(version),
	}}
}

// consumer is the other end of the queue, as an informer is: it applies what
// it pops to an Indexer.
type consumer struct {
	fifo    *DeltaFIFO[*corev1.Pod]
	indexer *Indexer[*corev1.Pod]
}

func newConsumer() *consumer {
	indexer := NewIndexer[*corev1.Pod](nil, nil)
	return &consumer{fifo: NewDeltaFIFO(FIFOOptions[*corev1.Pod]{Known: indexer}), indexer: indexer}
}

// pop takes one item and describes its deltas: "Added 1, Deleted 2?".
func (c *consumer) pop(t *testing.T) (key, deltas string, initial bool) {
	t.Helper()
	err := c.fifo.Pop(t.Context(), func(item Item[*corev1.Pod]) error {
		var parts []string
		for _, d := range item.Deltas {
			unknown := ""
			if d.FinalStateUnknown {
				unknown = "?"
			}
			parts = append(parts, fmt.Sprintf("%s %s%s", d.Type, d.Object.ResourceVersion, unknown))
			if d.Type == Deleted {
				c.indexer.Remove(item.Key)
			} else if err := c.indexer.Add(d.Object); err != nil {
				return err
			}
		}
		key, deltas, initial = strings.TrimPrefix(item.Key, "ns/"), strings.Join(parts, ", "), item.Initial
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return key, deltas, initial
}

func (c *consumer) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		key, deltas, _ := c.pop(t)
		if got := key + ": " + deltas; got != w {
			t.Errorf("popped %q, want %q", got, w)
		}
	}
	if n := c.fifo.Len(); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// TestPendingCountsWhatIsPopped: while an object is handed out, the consumer does not show it yet.
func TestPendingCountsWhatIsPopped(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Replace([]*corev1.Pod{pod("a", 1, 1), pod("b", 2, 2)}, "2"))
	var pending []int
	for range 2 {
		must(t, c.fifo.Pop(t.Context(), func(item Item[*corev1.Pod]) error {
			pending = append(pending, c.fifo.Pending())
			if item.Key == "ns/a" {
				must(t, c.fifo.Update(pod("a", 1, 3))) // is counted once
				pending = append(pending, c.fifo.Pending())
				must(t, c.fifo.Delete(pod("b", 2, 4)))
			}
			return nil
		}))
	}
	pending = append(pending, c.fifo.Pending())
	if want := []int{2, 2, 2, 1}; !slices.Equal(pending, want) {
		t.Errorf("%v objects are pending, want %v", pending, want)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestDeltasOfAnObjectStayInOrderAndObjectsInTurn(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Add(pod("a", 1, 1)), c.fifo.Add(pod("b", 2, 2)), c.fifo.Update(pod("a", 1, 3)), c.fifo.Delete(pod("a", 1, 4)))
	c.expect(t, "a: Added 1, Updated 3, Deleted 4", "b: Added 2")
}

func TestReplaceFindsWhatIsMissing(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Replace([]*corev1.Pod{pod("known", 1, 1), pod("stays", 2, 1)}, "1"))
	c.expect(t, "known: Replaced 1", "stays: Replaced 1")
	must(t, c.fifo.Add(pod("queued", 3, 2)), c.fifo.Replace([]*corev1.Pod{pod("stays", 2, 3), pod("new", 4, 3)}, "3"))
	c.expect(t, "queued: Added 2, Deleted 2?", "stays: Replaced 3", "new: Replaced 3", "known: Deleted 1?")
	if got := slices.Sorted(slices.Values(c.indexer.Keys())); !slices.Equal(got, []string{"ns/new", "ns/stays"}) {
		t.Errorf("left: %v", got)
	}
}

// Of the states of one object in one list, the latest is the object's, whatever their order is.
func TestReplaceWithAnObjectThatIsInItTwice(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Replace([]*corev1.Pod{pod("a", 1, 12), pod("b", 2, 3), pod("a", 1, 9), pod("b", 2, 4), pod("a", 1, 12)}, "20"))
	c.expect(t, "a: Replaced 12, Replaced 12", "b: Replaced 3, Replaced 4")
	must(t, c.fifo.Update(pod("a", 1, 30)), c.fifo.Replace([]*corev1.Pod{pod("a", 1, 28), pod("a", 1, 29), pod("a", 1, 27)}, "31"))
	c.expect(t, "a: Updated 30, Replaced 28, Replaced 29", "b: Deleted 4?")
	must(t, c.fifo.Replace([]*corev1.Pod{pod("a", 5, 40), pod("a", 1, 29)}, "41")) // another object, that was made later
	c.expect(t, "a: Replaced 40")
	must(t, c.fifo.Merge("", nil, []*corev1.Pod{pod("a", 5, 50), pod("a", 5, 49)}, "51"))
	c.expect(t, "a: Replaced 50")
	without := pod("a", 5, 0)
	without.ResourceVersion = ""
	must(t, c.fifo.Replace([]*corev1.Pod{pod("a", 5, 60), without}, "61")) // nothing says which is later: the last one
	c.expect(t, "a: Replaced 60, Replaced ")
}

func TestAnEndToldTwiceIsOneEnd(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Add(pod("a", 1, 1)), c.fifo.Replace(nil, "5"), c.fifo.Delete(pod("a", 1, 4)))
	c.expect(t, "a: Added 1, Deleted 4") // the final state is known after all
	must(t, c.fifo.Delete(pod("a", 1, 4)), c.fifo.Delete(pod("never", 9, 4)))
	c.expect(t)
}

func TestHasSyncedWhenTheFirstListHasBeenProcessed(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Replace([]*corev1.Pod{pod("a", 1, 1), pod("b", 2, 1)}, "1"), c.fifo.Add(pod("later", 3, 2)))
	for i, want := range []struct{ synced, initial bool }{{false, true}, {true, true}, {true, false}} {
		if _, _, initial := c.pop(t); initial != want.initial {
			t.Errorf("item %d: initial is %v", i, initial)
		}
		if c.fifo.HasSynced() != want.synced {
			t.Errorf("after item %d: HasSynced is %v", i, c.fifo.HasSynced())
		}
	}
	empty := newConsumer()
	if empty.fifo.HasSynced() {
		t.Error("synced before a list")
	}
	must(t, empty.fifo.Replace(nil, "1"))
	if !empty.fifo.HasSynced() {
		t.Error("an empty list must sync at once")
	}
}

func TestResyncLeavesQueuedObjectsAlone(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Replace([]*corev1.Pod{pod("idle", 1, 1), pod("busy", 2, 1)}, "1"))
	c.expect(t, "idle: Replaced 1", "busy: Replaced 1")
	must(t, c.fifo.Update(pod("busy", 2, 2)), c.fifo.Resync())
	c.expect(t, "busy: Updated 2", "idle: Sync 1")
}

func TestListShowsTheNewestQueuedStates(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Add(pod("a", 1, 1)), c.fifo.Update(pod("a", 1, 2)), c.fifo.Add(pod("gone", 2, 3)), c.fifo.Delete(pod("gone", 2, 4)))
	var versions []string
	for _, p := range c.fifo.List() {
		versions = append(versions, p.ResourceVersion)
	}
	if !slices.Equal(versions, []string{"2", "4"}) {
		t.Errorf("listed %v", versions)
	}
}

func TestQueueIsBoundedByTheNumberOfObjects(t *testing.T) {
	c := newConsumer()
	uid := 1
	must(t, c.fifo.Add(pod("a", uid, 0)))
	for i := 1; i < 10_000; i++ {
		if i%3 == 0 { // objects come and go under the same name
			must(t, c.fifo.Delete(pod("a", uid, i)))
			uid++
			must(t, c.fifo.Add(pod("a", uid, i)))
		} else {
			must(t, c.fifo.Update(pod("a", uid, i)))
		}
	}
	_, deltas, _ := c.pop(t)
	parts := strings.Split(deltas, ", ")
	if len(parts) > DefaultMaxDeltas {
		t.Errorf("%d deltas were kept", len(parts))
	}
	if parts[0] != "Added 0" || parts[len(parts)-1] != "Added 9999" && parts[len(parts)-1] != "Updated 9999" {
		t.Errorf("first and last must stay: %q", deltas)
	}
	if !strings.Contains(deltas, "Deleted") {
		t.Errorf("the end of the first object was merged away: %q", deltas)
	}
}

func TestCompressionIsAdmittedAndItsLimitCanBeRaised(t *testing.T) {
	c := newConsumer()
	c.fifo.RaiseMaxDeltas(50)
	c.fifo.RaiseMaxDeltas(10) // it is never lowered
	for i, want := range []struct {
		updates, deltas int
		compressed      bool
	}{{50, 50, false}, {51, 1, true}, {2, 2, false}} {
		for n := range want.updates {
			must(t, c.fifo.Update(pod("a", 1, n)))
		}
		must(t, c.fifo.Pop(t.Context(), func(item Item[*corev1.Pod]) error {
			if len(item.Deltas) != want.deltas || item.Compressed != want.compressed {
				t.Errorf("case %d: %d deltas, compressed %v", i, len(item.Deltas), item.Compressed)
			}
			return nil
		}))
	}
}

// What the consumer has surely processed never runs ahead of what it has in
// hand, and bookmarks count once nothing before them waits.
func TestProcessedIsTheResourceVersionOfTheConsumer(t *testing.T) {
	c := newConsumer()
	expect := func(when, want string) {
		t.Helper()
		if got := c.fifo.Processed(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	expect("at first", "")
	must(t, c.fifo.Replace([]*corev1.Pod{pod("a", 1, 3)}, "5"))
	expect("with the list queued", "")
	c.pop(t)
	expect("with the list processed", "5")
	c.fifo.Reached("6")
	expect("after a bookmark", "6")
	must(t, c.fifo.Update(pod("a", 1, 7)))
	c.fifo.Reached("7")
	must(t, c.fifo.Add(pod("b", 2, 8)))
	c.fifo.Reached("8")
	must(t, c.fifo.Update(pod("a", 1, 9)))
	c.fifo.Reached("9")
	expect("with two queued", "6")
	must(t, c.fifo.Pop(t.Context(), func(Item[*corev1.Pod]) error {
		expect("with the first in hand", "6")
		return nil
	}))
	expect("with the second queued", "7")
	c.pop(t)
	expect("with none", "9")
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsumer()
		must(t, c.fifo.Add(pod("a", 1, 1)))
		c.fifo.Close()
		if err := c.fifo.Pop(t.Context(), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Pop: %v", err)
		}
		if err := c.fifo.Add(pod("b", 2, 2)); !errors.Is(err, ErrClosed) {
			t.Errorf("Add: %v", err)
		}
	})
}

func TestPopEndsWithItsContextAndWakesForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsumer()
		ctx, cancel := context.WithCancel(t.Context())
		popped := make(chan error, 1)
		pop := func() {
			popped <- c.fifo.Pop(ctx, func(Item[*corev1.Pod]) error { return nil })
		}
		go pop()
		synctest.Wait()
		must(t, c.fifo.Add(pod("a", 1, 1)))
		if err := <-popped; err != nil {
			t.Fatal(err)
		}
		go pop()
		synctest.Wait()
		cancel()
		if err := <-popped; !errors.Is(err, context.Canceled) {
			t.Errorf("Pop: %v", err)
		}
	})
}

// An object that has left the queue and is not in the Indexer yet must be
// missed by neither Delete nor Replace.
func TestNothingIsForgottenWhileItIsProcessed(t *testing.T) {
	for name, end := range map[string]func(*DeltaFIFO[*corev1.Pod]) error{
		"Delete":  func(f *DeltaFIFO[*corev1.Pod]) error { return f.Delete(pod("a", 1, 2)) },
		"Replace": func(f *DeltaFIFO[*corev1.Pod]) error { return f.Replace(nil, "2") },
		"Merge":   func(f *DeltaFIFO[*corev1.Pod]) error { return f.Merge("", []*corev1.Pod{pod("a", 1, 1)}, nil, "2") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsumer()
			must(t, c.fifo.Add(pod("a", 1, 1)))
			var ended sync.WaitGroup
			err := c.fifo.Pop(t.Context(), func(item Item[*corev1.Pod]) error {
				begun := make(chan struct{})
				ended.Go(func() {
					close(begun)
					if err := end(c.fifo); err != nil {
						t.Error(err)
					}
				})
				<-begun
				return c.indexer.Add(item.Deltas.Newest().Object)
			})
			must(t, err)
			ended.Wait()
			c.pop(t)
			if c.indexer.Len() != 0 {
				t.Error("the object outlived its end")
			}
		})
	}
}

// Random operations from several producers against a model of the truth: the
// consumer must end with exactly the true objects, and must see each object's
// versions only grow.
func TestRandomHistoriesConverge(t *testing.T) {
	for seed := range uint64(20) {
		c := newConsumer()
		random := rand.New(rand.NewPCG(seed, 7))
		truth := map[string]*corev1.Pod{}
		seen := map[string]int{}
		apply := func(item Item[*corev1.Pod]) error {
			for _, d := range item.Deltas {
				if d.Type == Deleted {
					c.indexer.Remove(item.Key)
					continue
				}
				version, err := strconv.Atoi(d.Object.ResourceVersion)
				if err != nil || version < seen[item.Key] {
					return fmt.Errorf("%s went back from %d to %d: %w", item.Key, seen[item.Key], version, err)
				}
				seen[item.Key] = version
				if err := c.indexer.Add(d.Object); err != nil {
					return err
				}
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			for {
				if err := c.fifo.Pop(ctx, apply); err != nil {
					done <- err
					return
				}
			}
		}()
		for version := 1; version < 3000; version++ {
			name := fmt.Sprint(random.IntN(30))
			old, exists := truth[name]
			switch {
			case random.IntN(200) == 0: // a gap: things change unseen, then a list
				delete(truth, name)
				truth[name+"x"] = pod(name+"x", version, version)
				must(t, c.fifo.Replace(slices.Collect(maps.Values(truth)), ""))
			case !exists:
				truth[name] = pod(name, version, version)
				must(t, c.fifo.Add(truth[name]))
			case random.IntN(3) == 0:
				delete(truth, name)
				must(t, c.fifo.Delete(pod(name, 0, version)))
			default:
				next := old.DeepCopy()
				next.ResourceVersion = fmt.Sprint(version)
				truth[name] = next
				must(t, c.fifo.Update(next))
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for c.fifo.Len() > 0 {
			must(t, c.fifo.Pop(t.Context(), apply))
		}
		if c.indexer.Len() != len(truth) {
			t.Fatalf("seed %d: %d objects, want %d", seed, c.indexer.Len(), len(truth))
		}
		for name, want := range truth {
			got, ok := c.indexer.Get("ns/" + name)
			if !ok || got.ResourceVersion != want.ResourceVersion {
				t.Fatalf("seed %d: %s: present %v, want version %s", seed, name, ok, want.ResourceVersion)
			}
		}
	}
}

func TestSettledAndIdleWhenEverythingIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsumer()
		idle := 0
		c.fifo.onIdle = func() { idle++ }
		if err := c.fifo.Replace([]*corev1.Pod{pod("a", 1, 1)}, "1"); err != nil {
			t.Fatal(err)
		}
		if version, ok := c.fifo.Settled(); ok {
			t.Errorf("settled at %q with an object queued", version)
		}
		c.pop(t)
		if version, ok := c.fifo.Settled(); !ok || version != "1" {
			t.Errorf("settled: %q, %v", version, ok)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.fifo.Pop(ctx, func(Item[*corev1.Pod]) error { return nil }) }()
		synctest.Wait()
		if idle != 1 {
			t.Errorf("idle %d times, want 1", idle)
		}
		cancel()
	})
}

func TestQueueTombstoneLeavesWhatIsQueuedAlone(t *testing.T) {
	c := newConsumer()
	if err := c.fifo.Replace([]*corev1.Pod{pod("a", 1, 1), pod("b", 2, 1)}, "1"); err != nil {
		t.Fatal(err)
	}
	c.pop(t)
	for key, want := range map[string]bool{"ns/a": true, "ns/b": false, "ns/unknown": false} {
		if buried, err := c.fifo.QueueTombstone(key); err != nil || buried != want {
			t.Errorf("%s: %v, %v", key, buried, err)
		}
	}
	c.pop(t)
	if key, deltas, _ := c.pop(t); key != "a" || deltas != "Deleted 1?" {
		t.Errorf("%s: %s", key, deltas)
	}
}
