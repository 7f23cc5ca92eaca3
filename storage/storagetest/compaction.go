package storagetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/levelwire/levelwire/storage"
)

var compactionCases = []testCase{
	{"OldReadsFail", compactReads},
	{"CurrentStateStays", compactState},
	{"OldWatchesFail", compactWatches},
	{"BoundaryStays", compactBoundary},
	{"Refusals", compactRefusals},
	{"OpenStreamsGoOn", compactOpenStreams},
}

// churn writes one key count times and returns the revision of each write.
func (s *session) churn(key string, count int) []storage.Revision {
	s.Helper()
	revs := []storage.Revision{s.create(key, "0")}
	for i := 1; i < count; i++ {
		revs = append(revs, s.update(key, fmt.Sprint(i), revs[i-1]))
	}
	return revs
}

func (s *session) compact(at storage.Revision) {
	s.Helper()
	if err := s.Compact(s.ctx, at); err != nil {
		s.Fatalf("Compact(%d): %v", at, err)
	}
}

func compactReads(s *session) {
	revs := s.churn("/a", 10)
	s.compact(revs[5])
	for i, rev := range revs {
		_, getErr := s.Get(s.ctx, "/a", rev)
		_, listErr := s.List(s.ctx, "/", storage.ListOptions{At: rev})
		for _, err := range []error{getErr, listErr} {
			if i < 5 && !errors.Is(err, storage.ErrCompacted) {
				s.Errorf("read at %d, compacted to %d: %v, want %v", rev, revs[5], err, storage.ErrCompacted)
			}
			if i >= 5 && err != nil {
				s.Errorf("read at %d, compacted to %d: %v", rev, revs[5], err)
			}
		}
		if i >= 5 {
			s.expectState("/a", rev, fmt.Sprint(i), rev)
		}
	}
}

func compactState(s *session) {
	old := s.create("/old", "kept")
	revs := s.churn("/a", 10)
	deleted := s.create("/deleted", "x")
	s.delete("/deleted", deleted)
	before := items(s.list("/", storage.ListOptions{}))
	current := s.current()
	s.compact(current)
	if after := items(s.list("/", storage.ListOptions{})); !slices.Equal(after, before) {
		s.Fatalf("compaction changed the state from %q to %q", before, after)
	}
	if after := s.current(); after != current {
		s.Fatalf("compaction moved the revision from %d to %d", current, after)
	}
	s.expectState("/old", current, "kept", old)
	s.update("/a", "next", revs[9])
}

func compactWatches(s *session) {
	revs := s.churn("/a", 10)
	s.compact(revs[5])
	for _, after := range []storage.Revision{0, revs[0], revs[3]} {
		stream, err := s.Watch(s.ctx, "/", after)
		if err == nil {
			_, err = stream.Next()
		}
		if !errors.Is(err, storage.ErrCompacted) {
			s.Errorf("watch after %d, compacted to %d: %v, want %v", after, revs[5], err, storage.ErrCompacted)
		}
	}
}

func compactBoundary(s *session) {
	revs := s.churn("/a", 10)
	s.compact(revs[5])
	var want []string
	for i := 6; i < 10; i++ {
		want = append(want, put("/a", fmt.Sprint(i), revs[i]))
	}
	s.watch("/", revs[5]).expect(revs[9], want...)
	s.compact(revs[9])
	f := s.watch("/", revs[9])
	next := s.update("/a", "next", revs[9])
	f.expect(next, put("/a", "next", next))
}

func compactRefusals(s *session) {
	revs := s.churn("/a", 10)
	if err := s.Compact(s.ctx, revs[9]+100); !errors.Is(err, storage.ErrFutureRevision) {
		s.Errorf("Compact to the future: %v, want %v", err, storage.ErrFutureRevision)
	}
	s.compact(revs[5])
	for _, at := range []storage.Revision{revs[2], revs[5]} {
		if err := s.Compact(s.ctx, at); !errors.Is(err, storage.ErrCompacted) {
			s.Errorf("Compact(%d) after Compact(%d): %v, want %v", at, revs[5], err, storage.ErrCompacted)
		}
	}
	s.compact(revs[6])
}

func compactOpenStreams(s *session) {
	f := s.watch("/", s.current())
	revs := s.churn("/a", 10)
	events := f.until(revs[9])
	if len(events) != 10 {
		s.Fatalf("%d events, want 10", len(events))
	}
	s.compact(revs[9])
	next := s.update("/a", "next", revs[9])
	f.expect(next, put("/a", "next", next))
}
