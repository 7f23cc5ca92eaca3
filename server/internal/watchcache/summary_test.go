package watchcache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// TestSummariesAreMadeWhileObjectsAreWritten: several clients resume again and again
// from before the log while a writer, which does not wait for them, appends to it.
// In the end each must hold the newest state.
func TestSummariesAreMadeWhileObjectsAreWritten(t *testing.T) {
	const pods, changes, clients = 20, 4000, 4
	c := filled(t, Options{HistoryEvents: 64}, podA)
	end := rev(10 + changes)
	copies := make([]map[string]storage.Revision, clients+1)
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() { copies[i] = runClient(t, c, end, rand.New(rand.NewPCG(uint64(i), 2))) })
	}
	random := rand.New(rand.NewPCG(1, 1))
	for revision := rev(11); revision <= end; revision++ {
		p := pod{Namespace: "one", Name: fmt.Sprint("pod-", random.IntN(pods)), Node: "n1"}
		if _, there := c.Current().Get(p.Key()); there && random.IntN(3) == 0 {
			c.Apply([]Change{gone(p.Key(), revision)})
		} else {
			c.Apply([]Change{put(t, c, p, revision)})
		}
	}
	group.Wait()
	copies[clients] = runClient(t, c, end, random) // one without a watch during all changes
	for _, held := range copies {
		if want := revisions(c.Current()); fmt.Sprint(held) != fmt.Sprint(want) {
			t.Errorf("a client holds %v, want %v", held, want)
		}
	}
	if got := c.Stats().Resumes; got.Coalesced+got.Continued == 0 {
		t.Errorf("no watcher got coalesced history: %+v", got)
	}
}

// runClient is a client that listed at 10, whose watch breaks now and then, and that
// lists again when history has expired. It returns what it holds after the last
// change.
func runClient(t *testing.T, c *Cache, end storage.Revision, random *rand.Rand) map[string]storage.Revision {
	held, version := map[string]storage.Revision{podA.Key(): 1}, rev(10)
	for version < end {
		w, err := c.Watch(WatchOptions{After: version})
		for err == nil && version < end && random.IntN(8) > 0 {
			version, err = readSome(w, held, end)
		}
		if w != nil {
			w.Close()
		}
		if errors.Is(err, ErrExpired) {
			snapshot := c.Current()
			held, version = revisions(snapshot), snapshot.Revision()
		} else if err != nil {
			t.Error(err)
			return nil
		}
	}
	return held
}

// readSome applies the next events to a client's copy, or waits until there are
// some, and returns the revision that the client has reached.
func readSome(w *Watcher, held map[string]storage.Revision, end storage.Revision) (storage.Revision, error) {
	var buf [5]Event
	n, err := w.Read(buf[:])
	if n == 0 && err == nil && w.Reached() < end {
		<-w.Ready()
	}
	for _, e := range buf[:n] {
		if e.Type == Deleted {
			delete(held, e.Object.Key)
		} else {
			held[e.Object.Key] = e.Revision
		}
	}
	return w.Reached(), err
}
