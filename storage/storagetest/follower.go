package storagetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/storage"
)

// follower reads a stream and checks what holds for every stream: events are
// in the range, in order, after the start, never twice, and never at or below
// a revision that the stream has already declared complete.
type follower struct {
	*session
	stream  storage.Stream
	prefix  string
	reached storage.Revision
}

// next reads one batch and checks it against what came before.
func (f *follower) next() (storage.Batch, error) {
	batch, err := f.stream.Next()
	if err != nil {
		return batch, err
	}
	last := f.reached
	for _, e := range batch.Events {
		switch {
		case !strings.HasPrefix(e.Key, f.prefix):
			f.Errorf("the watch on %q delivered %s", f.prefix, line(e))
		case e.Revision <= f.reached:
			f.Errorf("%s was delivered after the stream had reached %d", line(e), f.reached)
		case e.Revision < last:
			f.Errorf("%s was delivered after an event of revision %d", line(e), last)
		case e.Deleted && e.Value != nil:
			f.Errorf("the deletion %s carries a value", line(e))
		}
		last = e.Revision
	}
	if batch.Revision < last {
		f.Errorf("a batch with events up to %d declares revision %d", last, batch.Revision)
	}
	f.reached = max(f.reached, batch.Revision)
	return batch, nil
}

// until reads up to and including rev and returns the events.
func (f *follower) until(rev storage.Revision) []storage.Event {
	f.Helper()
	var events []storage.Event
	for f.reached < rev {
		batch, err := f.next()
		if err != nil {
			f.Fatalf("Next, at %d on the way to %d: %v", f.reached, rev, err)
		}
		events = append(events, batch.Events...)
	}
	return events
}

// expect reads up to rev and compares the events with want.
func (f *follower) expect(rev storage.Revision, want ...string) {
	f.Helper()
	events := f.until(rev)
	got := make([]string, 0, len(events))
	for _, e := range events {
		got = append(got, line(e))
	}
	if !slices.Equal(got, want) {
		f.Fatalf("the watch on %q delivered\n  %s\nwant\n  %s", f.prefix,
			strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// expectEnd reads until the stream ends and checks its error, and that the
// error is final.
func (f *follower) expectEnd(want error) {
	f.Helper()
	for {
		_, err := f.next()
		if err == nil {
			continue
		}
		if !errors.Is(err, want) {
			f.Fatalf("the stream ended with %q, want %q", err, want)
		}
		if _, again := f.stream.Next(); !errors.Is(again, want) {
			f.Fatalf("Next after the end: %v, want %q again", again, want)
		}
		return
	}
}
