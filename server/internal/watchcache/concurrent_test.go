package watchcache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// TestSummariesAreMadeWhileObjectsAreWritten: several clients come back again and
// again from before the log, which goes on without waiting for them, and hold in
// the end what there is.
func TestSummariesAreMadeWhileObjectsAreWritten(t *testing.T) {
	const pods, changes, clients = 20, 4000, 4
	c := filled(t, Options{HistoryEvents: 64}, podA)
	end := rev(10 + changes)
	copies := make([]map[string]storage.Revision, clients+1)
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() { copies[i] = comeBack(t, c, end, rand.New(rand.NewPCG(uint64(i), 2))) })
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
	copies[clients] = comeBack(t, c, end, random) // one that was away for all of it
	for _, held := range copies {
		if want := revisions(c.Current()); fmt.Sprint(held) != fmt.Sprint(want) {
			t.Errorf("a client holds %v, want %v", held, want)
		}
	}
	if got := c.Stats().Resumes; got.Coalesced+got.Continued == 0 {
		t.Errorf("nobody was told coalesced history: %+v", got)
	}
}

// comeBack is a client that listed at 10, is cut off now and then, and lists when
// history has gone. It returns what it holds at the last change.
func comeBack(t *testing.T, c *Cache, end storage.Revision, random *rand.Rand) map[string]storage.Revision {
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

// readSome applies what is there to a client's copy, or waits for something, and
// returns how far it has come.
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
