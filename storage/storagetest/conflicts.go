package storagetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/levelwire/levelwire/storage"
)

var conflictCases = []testCase{
	{"CreateOfExistingKey", conflictCreate},
	{"UpdateOfChangedKey", conflictUpdate},
	{"DeleteOfChangedKey", conflictDelete},
	{"GuardedWriteOfMissingKey", conflictMissing},
	{"FailedWritesTakeNoRevision", conflictNoRevision},
	{"OneOfManyWritersWins", conflictRace},
}

// expectConflict checks that write fails with a ConflictError that carries
// the state that was found; found is empty if the key does not exist.
func (s *session) expectConflict(key string, expect storage.Revision, write func() error, found string) {
	s.Helper()
	var conflict *storage.ConflictError
	err := write()
	if !errors.As(err, &conflict) || !errors.Is(err, storage.ErrConflict) {
		s.Fatalf("the write of %s expecting %d: %v, want a ConflictError", key, expect, err)
	}
	got := ""
	if conflict.Current != nil {
		got = put(conflict.Current.Key, string(conflict.Current.Value), conflict.Current.Modified)
	}
	if conflict.Key != key || conflict.Expect != expect || got != found {
		s.Fatalf("conflict of %q, expecting %d, found %q; want %q, %d, %q", conflict.Key, conflict.Expect, got, key, expect, found)
	}
}

func conflictCreate(s *session) {
	rev := s.create("/a", "one")
	s.expectConflict("/a", 0, func() error {
		_, err := s.Create(s.ctx, "/a", []byte("two"), 0)
		return err
	}, put("/a", "one", rev))
	s.expectState("/a", 0, "one", rev)
}

func conflictUpdate(s *session) {
	first := s.create("/a", "one")
	second := s.update("/a", "two", first)
	for _, expect := range []storage.Revision{first, second + 100} {
		s.expectConflict("/a", expect, func() error {
			_, err := s.Update(s.ctx, "/a", []byte("three"), expect, 0)
			return err
		}, put("/a", "two", second))
	}
	s.expectState("/a", 0, "two", second)
}

func conflictDelete(s *session) {
	first := s.create("/a", "one")
	second := s.update("/a", "two", first)
	s.expectConflict("/a", first, func() error {
		_, err := s.Delete(s.ctx, "/a", first)
		return err
	}, put("/a", "two", second))
	s.expectState("/a", 0, "two", second)
}

func conflictMissing(s *session) {
	rev := s.create("/a", "one")
	s.delete("/a", rev)
	for _, key := range []string{"/a", "/never"} {
		s.expectConflict(key, rev, func() error {
			_, err := s.Update(s.ctx, key, []byte("two"), rev, 0)
			return err
		}, "")
		s.expectConflict(key, rev, func() error {
			_, err := s.Delete(s.ctx, key, rev)
			return err
		}, "")
		s.expectMissing(key, 0)
	}
}

func conflictNoRevision(s *session) {
	rev := s.create("/a", "one")
	_, createErr := s.Create(s.ctx, "/a", []byte("two"), 0)
	_, updateErr := s.Update(s.ctx, "/a", []byte("two"), rev+7, 0)
	_, deleteErr := s.Delete(s.ctx, "/b", rev)
	for _, err := range []error{createErr, updateErr, deleteErr} {
		if !errors.Is(err, storage.ErrConflict) {
			s.Fatalf("got %v, want a conflict", err)
		}
	}
	if current := s.current(); current != rev {
		s.Fatalf("failed writes moved the revision from %d to %d", rev, current)
	}
}

// conflictRace lets writers race for each state of one key: exactly one write
// succeeds in each round.
func conflictRace(s *session) {
	const rounds, writers = 10, 8
	rev := s.create("/raced", "0")
	for round := range rounds {
		results := make([]storage.Revision, writers)
		failures := make([]error, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				results[w], failures[w] = s.Update(s.ctx, "/raced", fmt.Appendf(nil, "%d/%d", round, w), rev, 0)
			})
		}
		wg.Wait()
		winners := 0
		next := rev
		for w := range writers {
			switch {
			case failures[w] == nil:
				winners++
				next = results[w]
			case !errors.Is(failures[w], storage.ErrConflict):
				s.Fatalf("writer %d: %v", w, failures[w])
			}
		}
		if winners != 1 {
			s.Fatalf("round %d: %d of %d writers with the same expectation succeeded", round, winners, writers)
		}
		rev = next
	}
}
