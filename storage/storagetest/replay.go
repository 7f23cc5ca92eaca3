package storagetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/levelwire/levelwire/storage"
)

var replayCases = []testCase{
	{"EveryRange", replayRanges},
	{"Long", replayLong},
	{"Refusals", replayRefusals},
	{"VisitorsError", replayError},
	{"Oldest", replayOldest},
	{"Created", replayCreated},
}

// replayed collects a replay and checks its order.
func (s *session) replayed(prefix string, after, through storage.Revision) []string {
	s.Helper()
	var out []string
	last := after
	err := s.Replay(s.ctx, prefix, after, through, func(events []storage.Event) error {
		for _, e := range events {
			if e.Revision < last || e.Revision <= after || e.Revision > through {
				s.Errorf("%s was replayed behind %d in (%d, %d]", line(e), last, after, through)
			}
			last = e.Revision
			out = append(out, line(e))
		}
		return nil
	})
	if err != nil {
		s.Fatalf("Replay(%q, %d, %d): %v", prefix, after, through, err)
	}
	return out
}

func replayRanges(s *session) {
	start := s.current()
	revs := s.churn("/a/x", 4)
	other := s.create("/b/y", "other")
	gone := s.delete("/a/x", revs[3])
	want := []string{}
	for i, rev := range revs {
		want = append(want, put("/a/x", fmt.Sprint(i), rev))
	}
	want = append(want, put("/b/y", "other", other), line(storage.Event{Key: "/a/x", Revision: gone, Deleted: true}))
	for from := range len(want) + 1 {
		for to := from; to <= len(want); to++ {
			after, through := start+storage.Revision(from), start+storage.Revision(to)
			if got := s.replayed("/", after, through); !slices.Equal(got, want[from:to]) {
				s.Errorf("replay of (%d, %d]: %q, want %q", after, through, got, want[from:to])
			}
		}
	}
	if got := s.replayed("/b/", start, gone); !slices.Equal(got, want[4:5]) {
		s.Errorf("replay of one prefix: %q, want %q", got, want[4:5])
	}
	for through := range start + 1 {
		if got := s.replayed("/", 0, through); len(got) > 0 {
			s.Errorf("replay of (0, %d], before the first write: %q", through, got)
		}
	}
}

// replayLong replays more than an engine reads at a time.
func replayLong(s *session) {
	last := s.current()
	many := s.churn("/a/many", 1200)
	if got := s.replayed("/a/", last, many[1199]); len(got) != 1200 || got[1199] != put("/a/many", "1199", many[1199]) {
		s.Errorf("a long replay has %d events, want 1200", len(got))
	}
}

func replayRefusals(s *session) {
	revs := s.churn("/a", 10)
	nothing := func([]storage.Event) error { return nil }
	if err := s.Replay(s.ctx, "/", revs[0], revs[9]+100, nothing); !errors.Is(err, storage.ErrFutureRevision) {
		s.Errorf("replay of the future: %v, want %v", err, storage.ErrFutureRevision)
	}
	s.compact(revs[5])
	if err := s.Replay(s.ctx, "/", revs[3], revs[9], nothing); !errors.Is(err, storage.ErrCompacted) {
		s.Errorf("replay of what was compacted: %v, want %v", err, storage.ErrCompacted)
	}
	if got := s.replayed("/", revs[5], revs[9]); len(got) != 4 {
		s.Errorf("replay after a compaction: %q, want 4 events", got)
	}
}

func replayError(s *session) {
	revs := s.churn("/a", 3)
	enough := errors.New("enough")
	if err := s.Replay(s.ctx, "/", revs[0], revs[2], func([]storage.Event) error { return enough }); !errors.Is(err, enough) {
		s.Errorf("the replay's error is %v, want the visitor's", err)
	}
}

func (s *session) oldest() storage.Revision {
	s.Helper()
	rev, err := s.Oldest(s.ctx)
	if err != nil {
		s.Fatalf("Oldest: %v", err)
	}
	return rev
}

func replayOldest(s *session) {
	oldest := s.oldest()
	revs := s.churn("/a", 10)
	if oldest < 1 || oldest > revs[0] {
		s.Errorf("the oldest revision of a new store is %d, and its first write is %d", oldest, revs[0])
	}
	for _, at := range []storage.Revision{revs[3], revs[7]} {
		s.compact(at)
		if got := s.oldest(); got != at {
			s.Errorf("after compaction to %d the oldest revision is %d", at, got)
		}
		s.list("/", storage.ListOptions{At: at})
		s.replayed("/", at, revs[9])
	}
}

func replayCreated(s *session) {
	revs := s.churn("/a", 3)
	s.delete("/a", revs[2])
	again := s.create("/a", "again")
	next := s.update("/a", "next", again)
	for _, test := range []struct{ at, want storage.Revision }{{revs[0], revs[0]}, {revs[2], revs[0]}, {again, again}, {next, again}, {0, again}} {
		kv, err := s.Get(s.ctx, "/a", test.at)
		if err != nil {
			s.Fatal(err)
		}
		page := s.list("/a", storage.ListOptions{At: test.at})
		if kv.Created != test.want || len(page.Items) != 1 || page.Items[0].Created != test.want {
			s.Errorf("at %d: created at %d, listed %+v, want %d", test.at, kv.Created, page.Items, test.want)
		}
	}
	_, err := s.Create(s.ctx, "/a", nil, 0)
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) || conflict.Current == nil || conflict.Current.Created != again {
		s.Errorf("the conflict says %v, want a key created at %d", err, again)
	}
}
