package storagetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// waitLimit bounds all waits of a case together. Only a failure reaches it.
const waitLimit = 3 * time.Minute

// Run checks that the stores that open returns keep the contract of package
// storage. open is called once or more per subtest; it returns a store without
// any key and registers its closing with t.Cleanup. Close may then be called a
// second time and must be harmless.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"Writes", writeCases},
		{"Conflicts", conflictCases},
		{"List", listCases},
		{"Watch", watchCases},
		{"Compaction", compactionCases},
		{"Lifetime", lifetimeCases},
		{"Expiry", expiryCases},
		{"History", historyCases},
		{"Replay", replayCases},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					c.run(newSession(t, open(t)))
				})
			}
		})
	}
}

// testCase is one behaviour of the contract.
type testCase struct {
	name string
	run  func(*session)
}

// session is a store under test with the calls that must not fail.
type session struct {
	*testing.T
	storage.Store
	ctx context.Context
}

func newSession(t *testing.T, store storage.Store) *session {
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	return &session{T: t, Store: store, ctx: ctx}
}

func (s *session) create(key, value string) storage.Revision {
	s.Helper()
	rev, err := s.Create(s.ctx, key, []byte(value), 0)
	if err != nil {
		s.Fatalf("Create(%q): %v", key, err)
	}
	return rev
}

func (s *session) update(key, value string, expect storage.Revision) storage.Revision {
	s.Helper()
	rev, err := s.Update(s.ctx, key, []byte(value), expect, 0)
	if err != nil {
		s.Fatalf("Update(%q, %d): %v", key, expect, err)
	}
	return rev
}

func (s *session) delete(key string, expect storage.Revision) storage.Revision {
	s.Helper()
	rev, err := s.Delete(s.ctx, key, expect)
	if err != nil {
		s.Fatalf("Delete(%q, %d): %v", key, expect, err)
	}
	return rev
}

func (s *session) current() storage.Revision {
	s.Helper()
	rev, err := s.Current(s.ctx)
	if err != nil {
		s.Fatalf("Current: %v", err)
	}
	return rev
}

func (s *session) list(prefix string, opts storage.ListOptions) storage.Page {
	s.Helper()
	page, err := s.List(s.ctx, prefix, opts)
	if err != nil {
		s.Fatalf("List(%q, %+v): %v", prefix, opts, err)
	}
	return page
}

func (s *session) watch(prefix string, after storage.Revision) *follower {
	s.Helper()
	stream, err := s.Watch(s.ctx, prefix, after)
	if err != nil {
		s.Fatalf("Watch(%q, %d): %v", prefix, after, err)
	}
	return &follower{session: s, stream: stream, prefix: prefix, reached: after}
}

// items renders a page for comparison: key=value@revision.
func items(page storage.Page) []string {
	out := make([]string, 0, len(page.Items))
	for _, kv := range page.Items {
		out = append(out, fmt.Sprintf("%s=%s@%d", kv.Key, kv.Value, kv.Modified))
	}
	return out
}

// line renders an event for comparison: key=value@revision or -key@revision.
func line(e storage.Event) string {
	if e.Deleted {
		return fmt.Sprintf("-%s@%d", e.Key, e.Revision)
	}
	return fmt.Sprintf("%s=%s@%d", e.Key, e.Value, e.Revision)
}

func put(key, value string, rev storage.Revision) string {
	return fmt.Sprintf("%s=%s@%d", key, value, rev)
}

func gone(key string, rev storage.Revision) string {
	return fmt.Sprintf("-%s@%d", key, rev)
}
