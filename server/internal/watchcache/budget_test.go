package watchcache

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// large is a pod whose event takes about so many kB.
func large(name string, kB int) pod {
	return pod{Namespace: "one", Name: name, Labels: map[string]string{"large": strings.Repeat("x", kB<<10)}}
}

// churn replaces one large pod from a revision on, so that history grows and what lives
// does not.
func churn(t testing.TB, c *Cache, name string, from storage.Revision, changes int) {
	t.Helper()
	for i := range changes {
		c.Apply([]Change{put(t, c, large(name, 64), from+storage.Revision(i))})
	}
}

// TestHistoryIsBoundedByWhatLives: the log of a small resource stays small, and grows with
// what lives.
func TestHistoryIsBoundedByWhatLives(t *testing.T) {
	c := filled(t, Options{Budget: NewBudget(BudgetOptions{})})
	churn(t, c, "a", 11, 200)
	if got := c.Stats().HistoryBytes; got > minHistory || got < minHistory/2 {
		t.Errorf("%d bytes of history beside one object, want about %d", got, minHistory)
	}
	for i := range 120 {
		c.Apply([]Change{put(t, c, large(fmt.Sprintf("b%d", i), 64), rev(1000+i))})
	}
	if got, live := c.Stats().HistoryBytes, c.ObjectBytes(); got < minHistory*3/2 || got > live {
		t.Errorf("%d bytes of history beside %d that live", got, live)
	}
	var deleted []Change
	for i := range 120 {
		deleted = append(deleted, gone(fmt.Sprintf("one/b%d", i), rev(2000+i)))
	}
	c.Apply(deleted)
	if got := c.Stats().HistoryBytes; got > minHistory {
		t.Errorf("%d bytes of history after what lives has gone", got)
	}
	if got := c.Stats().TombstoneBytes; got > minTombstones {
		t.Errorf("%d bytes of tombstones after that", got)
	}
}

// TestHistoryHasOneCeiling: all logs together keep within it, the one that reaches back
// furthest is shortened first, and every watcher still converges.
func TestHistoryHasOneCeiling(t *testing.T) {
	const ceiling = 10 << 20
	budget := NewBudget(BudgetOptions{HistoryBytes: ceiling})
	live := func() *Cache {
		var pods []pod
		for i := range 100 {
			pods = append(pods, large(fmt.Sprintf("live%d", i), 64))
		}
		return filled(t, Options{Budget: budget}, pods...)
	}
	early, late := live(), live()
	slow := watching(t, early, WatchOptions{After: 10})
	churn(t, early, "a", 11, 90)
	if got := early.Stats().HistoryBytes; got < 5<<20 {
		t.Fatalf("alone it has %d bytes", got)
	}
	churn(t, late, "a", 200, 90)
	first, second := early.Stats().HistoryBytes, late.Stats().HistoryBytes
	if first+second > ceiling+countEvery || first >= second || first < minHistory/2 {
		t.Errorf("%d bytes of the earlier history and %d of the later, with a ceiling of %d", first, second, ceiling)
	}
	if events := drain(t, slow); len(events) == 0 || events[len(events)-1].Revision != 100 {
		t.Errorf("a slow watcher has not converged: %v", eventStrings(events))
	}
	budget.Leave(early)
	churn(t, late, "b", 400, 90)
	if got := late.Stats().HistoryBytes; got > ceiling {
		t.Errorf("%d bytes without the other", got)
	}
}

// TestMemoryLimitShedsHistory: near the limit of the process the logs go first, then
// blocks; with room they grow again.
func TestMemoryLimitShedsHistory(t *testing.T) {
	budget := NewBudget(BudgetOptions{})
	c := filled(t, Options{Budget: budget}, large("live", 8<<10))
	churn(t, c, "a", 11, 100)
	before := c.Stats().HistoryBytes
	runs, _ := c.Current().Runs(nil, "")
	for run := range runs {
		if _, err := run.Block(NewForm("a block"), 0, func(Run) (Block, error) { return Block{Bytes: make([]byte, 1000)}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	budget.Limit(Memory{Live: 1 << 40, Limit: math.MaxInt64, Collection: 1})
	if got := c.Stats(); got.HistoryBytes != before || got.BlockBytes < 1000 {
		t.Errorf("without a limit, %d bytes of %d are left, and of %d blocks", got.HistoryBytes, before, got.BlockBytes)
	}
	const limit = 100 << 20
	budget.Limit(Memory{Live: limit*crowded/100 + 2<<20, Limit: limit, Collection: 2})
	less := c.Stats().HistoryBytes
	if less > before-2<<20 || less < before-4<<20 {
		t.Errorf("%d bytes of %d are left when 2 MiB are too much", less, before)
	}
	budget.Limit(Memory{Live: 2 * limit, Limit: limit, Collection: 2})
	if got := c.Stats().HistoryBytes; got != less {
		t.Error("one collection was counted twice")
	}
	budget.Limit(Memory{Live: 2 * limit, Limit: limit, Collection: 3})
	if got := c.Stats().HistoryBytes; got > shedHistory+70<<10 {
		t.Errorf("%d bytes are left when all are too much", got)
	}
	if got := c.Stats().BlockBytes; got != 0 {
		t.Errorf("%d bytes of blocks are left", got)
	}
	churn(t, c, "a", 200, 50)
	if got := c.Stats().HistoryBytes; got > shedHistory+2*countEvery {
		t.Errorf("%d bytes came back while memory is short", got)
	}
	for collection := range uint64(50) {
		budget.Limit(Memory{Live: limit / 10, Limit: limit, Collection: 10 + collection})
	}
	churn(t, c, "a", 400, 100)
	if got := c.Stats().HistoryBytes; got < before/2 {
		t.Errorf("only %d bytes of %d come back with room", got, before)
	}
}

// TestFormsOfReadEventsGo: what was made for one event does not stay as long as the event;
// a slow watcher gets it nevertheless, and what it has made goes as well.
func TestFormsOfReadEventsGo(t *testing.T) {
	id := NewForm("as long as the JSON")
	c := filled(t, Options{Budget: NewBudget(BudgetOptions{})})
	read := func(w *Watcher) (n int) {
		for _, e := range drain(t, w) {
			n++
			made, err := e.Object.Form(id, func(o *Object) ([]byte, error) { return append([]byte("a form of "), o.JSON()...), nil })
			if err != nil || len(made) != e.Object.Size()+10 {
				t.Fatalf("a form has %d bytes: %v", len(made), err)
			}
		}
		return n
	}
	quick := watching(t, c, WatchOptions{After: 10})
	name, next := "a", rev(11)
	write := func(changes int) {
		for range changes {
			c.Apply([]Change{put(t, c, large(name, 16), next), gone("one/"+name, next+1)})
			next += 2
			read(quick)
		}
	}
	write(200)
	const most = 2*minHistory/formShare + 64<<10 // of each state the form as it was written, and as it was deleted
	if s := c.Stats(); s.HistoryBytes < 3<<20 || s.FormBytes > most {
		t.Errorf("%d bytes of forms of %d bytes of history", s.FormBytes, s.HistoryBytes)
	}
	slow := watching(t, c, WatchOptions{After: next - 200})
	if n := read(slow); n != 199 {
		t.Fatalf("a slow watcher got %d events, want 199", n)
	}
	if s := c.Stats(); s.FormBytes < 1<<20 {
		t.Errorf("%d bytes of forms were made for the slow watcher", s.FormBytes)
	}
	write(10)
	write(400)
	if s := c.Stats(); s.FormBytes > most {
		t.Errorf("%d bytes of forms are left of the slow watcher", s.FormBytes)
	}
}

// TestBudgetUnderConcurrency writes to several caches of one small budget, reads them, and
// limits memory, all at once: for the race detector, and for deadlocks.
func TestBudgetUnderConcurrency(t *testing.T) {
	budget := NewBudget(BudgetOptions{HistoryBytes: 1 << 20})
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		c := filled(t, Options{Budget: budget})
		w := watching(t, c, WatchOptions{After: 10})
		readers.Go(func() {
			for {
				var buf [8]Event
				n, err := w.Read(buf[:])
				if err != nil {
					t.Errorf("a watcher ended: %v", err)
					return
				}
				if n > 0 {
					if buf[n-1].Revision == 10+300 {
						return
					}
					continue
				}
				<-w.Ready()
			}
		})
		writers.Go(func() { churn(t, c, "a", 11, 300) })
	}
	readers.Go(func() {
		for collection := uint64(1); ; collection++ {
			select {
			case <-done:
				return
			default:
				budget.Limit(Memory{Live: 75 + collection%2*1000, Limit: 100, Collection: collection})
			}
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
}
