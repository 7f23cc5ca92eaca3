package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/levelwire/levelwire/storage"
)

var historyCases = []testCase{
	{"ConcurrentWritersAndWatchers", historyConcurrent},
}

// write is one acknowledged write of a recorded run.
type write struct {
	event  storage.Event
	before storage.Revision // the greatest revision its writer knew when it began
}

// historyConcurrent lets writers change a few keys at once while streams
// follow, and then checks the recorded history:
//
//   - Unique: no two acknowledged writes share a revision.
//   - Ordered: a write's revision is greater than every revision its writer
//     had seen before it began.
//   - Reliable: the watch delivers exactly the acknowledged writes.
//   - Resumable: a watch from any revision delivers the rest of that history.
//   - Snapshot: a list at R is the replay of the history up to R.
//   - Linearizable reads: a read sees what was acknowledged before it began.
func historyConcurrent(s *session) {
	const writers, writesEach = 8, 60
	start := s.current()
	live := s.watch("/h/", start)
	recorded := make([][]write, writers)
	failures := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { recorded[w], failures[w] = s.randomWrites(w, writesEach) })
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		s.Fatal(err)
	}
	history := slices.Concat(recorded...)
	slices.SortFunc(history, func(a, b write) int { return int(a.event.Revision - b.event.Revision) })
	for i, w := range history {
		if w.event.Revision <= w.before {
			s.Errorf("%s was written by a client that had already seen %d", line(w.event), w.before)
		}
		if i > 0 && w.event.Revision == history[i-1].event.Revision {
			s.Errorf("%s and %s share a revision", line(w.event), line(history[i-1].event))
		}
	}
	want := make([]string, len(history))
	for i, w := range history {
		want[i] = line(w.event)
	}
	end := s.current()
	live.expect(end, want...)
	s.checkResumes(history, want, start, end)
	s.checkSnapshots(history, end)
}

// randomWrites creates, updates and deletes random keys and records what was
// acknowledged. A conflict is a legitimate answer; so is a missing key.
func (s *session) randomWrites(seed, count int) ([]write, error) {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	var acknowledged []write
	var known storage.Revision
	for n := 0; len(acknowledged) < count; n++ {
		key := fmt.Sprintf("/h/%d", random.IntN(12))
		value := fmt.Sprintf("%d.%d", seed, n)
		before := known
		kv, err := s.Get(s.ctx, key, 0)
		var rev storage.Revision
		deleted := false
		switch {
		case errors.Is(err, storage.ErrNotFound):
			rev, err = s.Create(s.ctx, key, []byte(value), 0)
		case err != nil:
		case random.IntN(4) == 0:
			deleted = true
			rev, err = s.Delete(s.ctx, key, kv.Modified)
		default:
			rev, err = s.Update(s.ctx, key, []byte(value), kv.Modified, 0)
		}
		before = max(before, kv.Modified)
		if errors.Is(err, storage.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("writer %d, %s: %w", seed, key, err)
		}
		event := storage.Event{Key: key, Value: []byte(value), Revision: rev, Deleted: deleted}
		if deleted {
			event.Value = nil
		}
		acknowledged = append(acknowledged, write{event, before})
		read, err := s.Current(s.ctx)
		if err != nil {
			return nil, fmt.Errorf("current revision after the write of %d: %w", rev, err)
		}
		if read < rev {
			return nil, fmt.Errorf("after the write of %d the current revision is %d", rev, read)
		}
		known = read
	}
	return acknowledged, nil
}

// checkResumes watches from a sample of revisions.
func (s *session) checkResumes(history []write, want []string, start, end storage.Revision) {
	s.Helper()
	for i := 0; i < len(history); i += 1 + len(history)/24 {
		s.watch("/h/", history[i].event.Revision).expect(end, want[i+1:]...)
	}
	s.watch("/h/", start).expect(end, want...)
}

// checkSnapshots lists at a sample of revisions and compares with the replay.
func (s *session) checkSnapshots(history []write, end storage.Revision) {
	s.Helper()
	state := map[string]string{}
	for i, w := range history {
		if w.event.Deleted {
			delete(state, w.event.Key)
		} else {
			state[w.event.Key] = line(w.event)
		}
		if i%7 != 0 && i != len(history)-1 {
			continue
		}
		var want []string
		for _, l := range state {
			want = append(want, l)
		}
		slices.Sort(want)
		got := items(s.list("/h/", storage.ListOptions{At: w.event.Revision}))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			s.Fatalf("the list at %d is %q, the replay %q", w.event.Revision, got, want)
		}
	}
	if page := s.list("/h/", storage.ListOptions{}); page.Revision != end || len(page.Items) != len(state) {
		s.Fatalf("the last list: %d items at %d, want %d at %d", len(page.Items), page.Revision, len(state), end)
	}
}
