package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/storage"
)

var expiryCases = []testCase{
	{"KeysExpireAsDeletions", expiryDeletes},
	{"UpdateRenewsOrRemoves", expiryUpdate},
}

// expiryDeletes gives several keys the same lifetime and expects each to be
// deleted once, not before its time, and seen by readers and watchers alike.
func expiryDeletes(s *session) {
	const count = 5
	const ttl = time.Second
	f := s.watch("/ttl/", s.current())
	begin := time.Now()
	var want []string
	for i := range count {
		key := fmt.Sprintf("/ttl/%d", i)
		if _, err := s.Create(s.ctx, key, []byte("x"), ttl); err != nil {
			s.Fatalf("Create(%q): %v", key, err)
		}
		want = append(want, key)
	}
	stays := s.create("/ttl/stays", "x")
	var deleted []string
	for len(deleted) < count {
		batch, err := f.next()
		if err != nil {
			s.Fatalf("after the expiry of %q: %v", deleted, err)
		}
		for _, e := range batch.Events {
			if e.Deleted {
				deleted = append(deleted, e.Key)
			}
		}
	}
	if elapsed := time.Since(begin); elapsed < ttl {
		s.Errorf("keys with a ttl of %v were gone after %v", ttl, elapsed)
	}
	slices.Sort(deleted)
	if !slices.Equal(deleted, want) {
		s.Errorf("expired %q, want %q", deleted, want)
	}
	if got := items(s.list("/ttl/", storage.ListOptions{})); !slices.Equal(got, []string{put("/ttl/stays", "x", stays)}) {
		s.Errorf("left over: %q", got)
	}
}

// expiryUpdate creates keys with a short ttl. One gets a long ttl, one loses its
// ttl, and a key without a ttl gets one: only that one and the untouched ones are
// deleted.
func expiryUpdate(s *session) {
	const short = time.Second
	revs := map[string]storage.Revision{}
	for _, key := range []string{"/ttl/renewed", "/ttl/removed", "/ttl/untouched"} {
		rev, err := s.Create(s.ctx, key, []byte("1"), short)
		if err != nil {
			s.Fatal(err)
		}
		revs[key] = rev
	}
	revs["/ttl/given"] = s.create("/ttl/given", "1")
	f := s.watch("/ttl/", s.current())
	for key, ttl := range map[string]time.Duration{"/ttl/renewed": time.Hour, "/ttl/removed": 0, "/ttl/given": short} {
		if _, err := s.Update(s.ctx, key, []byte("2"), revs[key], ttl); err != nil {
			s.Fatalf("Update(%q): %v", key, err)
		}
	}
	var deleted []string
	for len(deleted) < 2 {
		batch, err := f.next()
		if err != nil {
			s.Fatalf("after the expiry of %q: %v", deleted, err)
		}
		for _, e := range batch.Events {
			if e.Deleted {
				deleted = append(deleted, e.Key)
			}
		}
	}
	slices.Sort(deleted)
	if got := strings.Join(deleted, " "); got != "/ttl/given /ttl/untouched" {
		s.Fatalf("expired: %s", got)
	}
}
