package storagetest

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/storage"
)

var watchCases = []testCase{
	{"LiveEvents", watchLive},
	{"FromThePast", watchPast},
	{"FromEveryRevision", watchResume},
	{"FromTheFuture", watchFuture},
	{"OnlyThePrefix", watchPrefix},
	{"ProgressWithoutEvents", watchProgress},
	{"SlowReaderMissesNothing", watchSlow},
	{"ManyStreams", watchMany},
	{"IndependentStreams", watchIndependent},
	{"ReadsAreNotBehindEvents", watchThenRead},
}

func watchLive(s *session) {
	f := s.watch("/w/", s.current())
	created := s.create("/w/a", "1")
	f.expect(created, put("/w/a", "1", created))
	updated := s.update("/w/a", "2", created)
	f.expect(updated, put("/w/a", "2", updated))
	deleted := s.delete("/w/a", updated)
	f.expect(deleted, gone("/w/a", deleted))
}

func watchPast(s *session) {
	start := s.current()
	a := s.create("/w/a", "1")
	b := s.create("/w/b", "1")
	a2 := s.update("/w/a", "2", a)
	b2 := s.delete("/w/b", b)
	s.watch("/w/", start).expect(b2,
		put("/w/a", "1", a), put("/w/b", "1", b), put("/w/a", "2", a2), gone("/w/b", b2))
	s.watch("/w/", 0).expect(b2,
		put("/w/a", "1", a), put("/w/b", "1", b), put("/w/a", "2", a2), gone("/w/b", b2))
}

func watchResume(s *session) {
	start := s.current()
	var want []string
	var revs []storage.Revision
	last := start
	for i := range 12 {
		key := fmt.Sprintf("/w/%d", i%3)
		kv, err := s.Get(s.ctx, key, 0)
		switch {
		case err != nil:
			last = s.create(key, "new")
			want = append(want, put(key, "new", last))
		case i%4 == 3:
			last = s.delete(key, kv.Modified)
			want = append(want, gone(key, last))
		default:
			last = s.update(key, fmt.Sprint(i), kv.Modified)
			want = append(want, put(key, fmt.Sprint(i), last))
		}
		revs = append(revs, last)
	}
	s.watch("/w/", start).expect(last, want...)
	for i, rev := range revs[:len(revs)-1] {
		s.watch("/w/", rev).expect(last, want[i+1:]...)
	}
}

func watchFuture(s *session) {
	f := s.watch("/w/", s.current()+2)
	s.create("/w/a", "1")
	s.create("/w/b", "2")
	c := s.create("/w/c", "3")
	f.expect(c, put("/w/c", "3", c))
}

func watchPrefix(s *session) {
	f := s.watch("/w/", s.current())
	s.create("/v/z", "x")
	s.create("/w", "x")
	in := s.create("/w/a", "x")
	s.create("/w0", "x")
	last := s.create("/w/\xff\xff", "x")
	f.expect(last, put("/w/a", "x", in), put("/w/\xff\xff", "x", last))
}

func watchProgress(s *session) {
	f := s.watch("/w/", s.current())
	first := s.create("/w/a", "1")
	f.expect(first, put("/w/a", "1", first))
	for i := range 5 {
		s.create(fmt.Sprintf("/elsewhere/%d", i), "x")
	}
	f.expect(s.current())
	next := s.create("/w/b", "1")
	f.expect(next, put("/w/b", "1", next))
}

// watchSlow opens a stream, writes far more than any buffer is likely to hold,
// and only then reads.
func watchSlow(s *session) {
	f := s.watch("/slow/", s.current())
	s.fill("/slow/", 4000)
	events := f.until(s.current())
	if len(events) != 4000 {
		s.Fatalf("a slow reader received %d of 4000 events", len(events))
	}
}

func watchMany(s *session) {
	const streams = 50
	start := s.current()
	followers := make([]*follower, streams)
	for i := range followers {
		followers[i] = s.watch(fmt.Sprintf("/many/%d", i%10), start)
	}
	want := make([][]string, 10)
	var last storage.Revision
	for i := range 40 {
		key := fmt.Sprintf("/many/%d/%d", i%10, i)
		last = s.create(key, "v")
		want[i%10] = append(want[i%10], put(key, "v", last))
	}
	s.current()
	for i, f := range followers {
		f.expect(last, want[i%10]...)
	}
}

// watchIndependent ends one stream and expects another to go on.
func watchIndependent(s *session) {
	start := s.current()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stream, err := s.Watch(ctx, "/w/", start)
	if err != nil {
		s.Fatal(err)
	}
	ended := &follower{session: s, stream: stream, prefix: "/w/", reached: start}
	other := s.watch("/w/", start)
	first := s.create("/w/a", "1")
	ended.expect(first, put("/w/a", "1", first))
	cancel()
	ended.expectEnd(context.Canceled)
	second := s.create("/w/b", "2")
	other.expect(second, put("/w/a", "1", first), put("/w/b", "2", second))
}

// watchThenRead reads after each batch of a watch, while others write: a list, a
// list at the event's own revision and a get must see what the watch has delivered.
// A slow machine gets through fewer rounds.
func watchThenRead(s *session) {
	const rounds, count, enough = 10, 300, 5 * time.Second
	f := s.watch("/w/", s.current())
	for begun, round := time.Now(), 0; round < rounds && time.Since(begun) < enough; round++ { //passes: fewer rounds will do
		read := make(chan error, 1)
		go func() { read <- readBehind(f, count) }()
		s.fill(fmt.Sprintf("/w/%d/", round), count)
		if err := <-read; err != nil {
			s.Fatal(err)
		}
	}
}

// readBehind reads each batch's last key until count events have arrived.
func readBehind(f *follower, count int) error {
	for seen := 0; seen < count; {
		batch, err := f.next()
		if err != nil {
			return fmt.Errorf("after %d events: %w", seen, err)
		}
		if seen += len(batch.Events); len(batch.Events) == 0 {
			continue
		}
		last := batch.Events[len(batch.Events)-1]
		page, err := f.List(f.ctx, last.Key, storage.ListOptions{})
		if err != nil {
			return fmt.Errorf("a list after %s: %w", line(last), err)
		}
		if page.Revision < last.Revision || len(page.Items) != 1 {
			return fmt.Errorf("a list after %s is of revision %d and has %q", line(last), page.Revision, items(page))
		}
		if _, err := f.List(f.ctx, last.Key, storage.ListOptions{At: last.Revision}); err != nil {
			return fmt.Errorf("a list at the revision of %s: %w", line(last), err)
		}
		if _, err := f.Get(f.ctx, last.Key, last.Revision); err != nil {
			return fmt.Errorf("a get at the revision of %s: %w", line(last), err)
		}
	}
	return nil
}
