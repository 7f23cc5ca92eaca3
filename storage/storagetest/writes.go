package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/levelwire/levelwire/storage"
)

var writeCases = []testCase{
	{"CreateUpdateDeleteRoundTrip", writesRoundTrip},
	{"RevisionsGrowAcrossKeys", writesGrow},
	{"GetAtRevision", writesGetAt},
	{"GetOfMissingKey", writesGetMissing},
	{"RecreatedKeyIsNew", writesRecreate},
	{"ValuesOfThreeMegabytes", writesLarge},
	{"KeysAreBytes", writesOddKeys},
	{"CurrentSeesEveryAcknowledgedWrite", writesCurrent},
}

func writesRoundTrip(s *session) {
	created := s.create("/a", "one")
	s.expectState("/a", 0, "one", created)
	updated := s.update("/a", "two", created)
	s.expectState("/a", 0, "two", updated)
	s.delete("/a", updated)
	s.expectMissing("/a", 0)
}

func writesGrow(s *session) {
	last := s.current()
	for i := range 20 {
		key := fmt.Sprintf("/grow/%02d", i)
		created := s.create(key, "v")
		updated := s.update(key, "w", created)
		deleted := s.delete(key, updated)
		if created <= last || updated <= created || deleted <= updated {
			s.Fatalf("after %d: created %d, updated %d, deleted %d; each must be greater", last, created, updated, deleted)
		}
		last = deleted
	}
}

func writesGetAt(s *session) {
	before := s.create("/other", "x")
	created := s.create("/a", "one")
	updated := s.update("/a", "two", created)
	between := s.create("/between", "x")
	deleted := s.delete("/a", updated)
	s.create("/after", "x")

	s.expectMissing("/a", before)
	s.expectState("/a", created, "one", created)
	s.expectState("/a", updated, "two", updated)
	s.expectState("/a", between, "two", updated)
	s.expectMissing("/a", deleted)
	if _, err := s.Get(s.ctx, "/a", s.current()+100); !errors.Is(err, storage.ErrFutureRevision) {
		s.Fatalf("Get at a future revision: %v, want %v", err, storage.ErrFutureRevision)
	}
}

func writesGetMissing(s *session) {
	s.expectMissing("/none", 0)
	s.create("/nonesuch", "x")
	s.expectMissing("/none", 0)
	s.expectMissing("/nonesuchlonger", 0)
}

func writesRecreate(s *session) {
	first := s.create("/a", "one")
	s.delete("/a", first)
	second := s.create("/a", "two")
	s.expectState("/a", 0, "two", second)
	s.expectConflict("/a", first, func() error {
		_, err := s.Update(s.ctx, "/a", []byte("three"), first, 0)
		return err
	}, put("/a", "two", second))
}

func writesLarge(s *session) {
	value := bytes.Repeat([]byte("levelwire "), 3<<20/10)
	rev, err := s.Create(s.ctx, "/large", value, 0)
	if err != nil {
		s.Fatalf("Create of %d bytes: %v", len(value), err)
	}
	kv, err := s.Get(s.ctx, "/large", 0)
	if err != nil || !bytes.Equal(kv.Value, value) || kv.Modified != rev {
		s.Fatalf("Get: %d bytes at %d, %v; want %d bytes at %d", len(kv.Value), kv.Modified, err, len(value), rev)
	}
	events := s.watch("/large", 0).until(rev)
	if len(events) != 1 || !bytes.Equal(events[0].Value, value) {
		s.Fatalf("the watch delivered %d events, want the large one", len(events))
	}
}

func writesOddKeys(s *session) {
	keys := []string{"/k/ ", "/k/%2e", "/k/a:b", "/k/\x01", "/k/é", "/k/\xff\xfe", "/k/" + strings.Repeat("n", 1000)}
	for _, key := range keys {
		rev := s.create(key, "v")
		s.expectState(key, 0, "v", rev)
	}
	if page := s.list("/k/", storage.ListOptions{}); len(page.Items) != len(keys) {
		s.Fatalf("List returned %d keys, want %d: %q", len(page.Items), len(keys), items(page))
	}
}

func writesCurrent(s *session) {
	for i := range 10 {
		rev := s.create(fmt.Sprintf("/current/%d", i), "v")
		if current := s.current(); current != rev {
			s.Fatalf("Current is %d right after the write of %d", current, rev)
		}
	}
}

func (s *session) expectState(key string, at storage.Revision, value string, modified storage.Revision) {
	s.Helper()
	kv, err := s.Get(s.ctx, key, at)
	if err != nil {
		s.Fatalf("Get(%q, %d): %v", key, at, err)
	}
	if kv.Key != key || string(kv.Value) != value || kv.Modified != modified {
		s.Fatalf("Get(%q, %d) = %s, want %s", key, at, put(kv.Key, string(kv.Value), kv.Modified), put(key, value, modified))
	}
}

func (s *session) expectMissing(key string, at storage.Revision) {
	s.Helper()
	if kv, err := s.Get(s.ctx, key, at); !errors.Is(err, storage.ErrNotFound) {
		s.Fatalf("Get(%q, %d) = %s, %v; want %v", key, at, put(kv.Key, string(kv.Value), kv.Modified), err, storage.ErrNotFound)
	}
}
