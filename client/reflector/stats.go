package reflector

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/client/internal/contain"
	"github.com/levelwire/levelwire/client/internal/transfer"
)

// ListCause says why a Reflector listed.
type ListCause string

// The causes of a list.
const (
	ListInitial  ListCause = "initial"  // nothing was known
	ListExpired  ListCause = "expired"  // the server no longer has the version to resume from (410)
	ListRejected ListCause = "rejected" // the server does not accept the version to resume from (400, 422)
	ListDecode   ListCause = "decode"   // the events after the version cannot be decoded, or are over the limit
	ListRewound  ListCause = "rewound"  // the server's versions went backwards
	ListRepeated ListCause = "repeated" // the list before this one failed
	ListReturned ListCause = "returned" // the resource was gone, and is back
	// ListUnwatched: the server does not allow, or does not have, a watch of the
	// resource (403, 405, 501), and lists stand for it. So it is if something else than the
	// server says so five times in a row, or answers with a page, and after a watch that was open if
	// that has lasted for a minute. So it is, too, if each request for a watch has failed for a minute with
	// another error than 429, and the server answers a list of one object.
	ListUnwatched ListCause = "unwatched"
	// ListUnversioned: lists of the server have no resourceVersion, and a watch has ended.
	ListUnversioned ListCause = "unversioned"
	// ListStuck: streams from the version ended at once, again and again, with an error of
	// whatever code or empty, or the server answered each request for one with an error within it
	// (500), or an event did not arrive as a whole, twice, in the time for which a watch lasts.
	ListStuck ListCause = "stuck"
)

// ResumeReason says why a watch was opened from the last version.
type ResumeReason string

// The reasons of a resume.
const (
	ResumeEnded     ResumeReason = "ended"     // the stream ended cleanly, as after its timeout
	ResumeCut       ResumeReason = "cut"       // the connection broke within the stream
	ResumeRefused   ResumeReason = "refused"   // no connection could be made
	ResumeBusy      ResumeReason = "busy"      // 429
	ResumeServer    ResumeReason = "server"    // 5xx, as an answer or within the stream
	ResumeDenied    ResumeReason = "denied"    // another 4xx: 401, 403
	ResumeNotServed ResumeReason = "notserved" // 404: the server does not serve the resource
	ResumeSilent    ResumeReason = "silent"    // nothing came for Options.SilenceTimeout, or a part of an event and not the rest
	ResumeShort     ResumeReason = "short"     // the stream ended within a second, without an event
	ResumeDecode    ResumeReason = "decode"    // an event could not be decoded, or was over the limit
)

// Stats counts what a Reflector did. It is a copy and shares no memory.
type Stats struct {
	// Lists counts lists begun by cause, streaming or in pages.
	Lists map[ListCause]int64
	// StreamingLists and PagedLists count lists completed, by kind; Pages the
	// answers the latter were made of.
	StreamingLists, PagedLists, Pages int64
	// StreamingFallbacks counts streaming lists given up for pages.
	StreamingFallbacks int64
	// Differences counts questions for a difference in place of a list, by what
	// came of them. DifferenceObjects counts objects received in those that were
	// applied, and DifferenceBytes what they took, both directions together.
	Differences                        map[DifferenceResult]int64
	DifferenceObjects, DifferenceBytes int64
	// Watches counts streams opened, those of streaming lists included.
	Watches int64
	// Polls counts the requests of long polling, of which one of Watches makes
	// many.
	Polls int64
	// Resumes counts watches tried again from the last version, by reason.
	Resumes map[ResumeReason]int64
	// Events counts events that reached the store; Bookmarks counts bookmarks.
	Events, Bookmarks int64
	// Stale counts events and lists that were older than what had been seen,
	// and were dropped.
	Stale int64
	// DecodeErrors counts events and lists that could not be understood.
	DecodeErrors int64
	// Panics counts calls of Options.OnError, OnProgress and Rand that panicked. The Reflector goes on.
	Panics int64
	// LastContact is the last moment at which the store was known to lack nothing but
	// what was on its way; zero if never: a list or a difference was asked for that is now
	// complete, an event or a bookmark came, or began to, or a watch was opened that then was quiet for half a minute, or
	// that the server has ended well after a second or more. A watch on which a part of an
	// event has come was not quiet since.
	// Lists that show nothing beyond events that could not be read do not count, and nor
	// do watches of servers whose lists have no resourceVersion.
	LastContact time.Time
	// LastError is what the reflector recovered from last; nil once a list or
	// a watch has been opened since.
	LastError error
	// GoneSince is since when the server has said that it has no such
	// resource, once Options.GoneAfter has passed; zero while it has.
	GoneSince time.Time
}

// ListCount is the number of lists begun, whatever the cause.
func (s Stats) ListCount() int64 {
	var n int64
	for _, v := range s.Lists {
		n += v
	}
	return n
}

// ResumeCount is the number of resumes, whatever the reason.
func (s Stats) ResumeCount() int64 {
	var n int64
	for _, v := range s.Resumes {
		n += v
	}
	return n
}

// Plus returns what two Reflectors did together. LastContact is the earlier of
// both, and GoneSince that of the Reflector whose resource has been gone for
// longer.
func (s Stats) Plus(o Stats) Stats {
	s.Lists, s.Resumes = sum(s.Lists, o.Lists), sum(s.Resumes, o.Resumes)
	s.Differences = sum(s.Differences, o.Differences)
	s.DifferenceObjects += o.DifferenceObjects
	s.DifferenceBytes += o.DifferenceBytes
	s.StreamingLists += o.StreamingLists
	s.PagedLists += o.PagedLists
	s.Pages += o.Pages
	s.StreamingFallbacks += o.StreamingFallbacks
	s.Watches += o.Watches
	s.Polls += o.Polls
	s.Events += o.Events
	s.Bookmarks += o.Bookmarks
	s.Stale += o.Stale
	s.DecodeErrors += o.DecodeErrors
	s.Panics += o.Panics
	if o.LastContact.Before(s.LastContact) {
		s.LastContact = o.LastContact
	}
	if s.GoneSince.IsZero() || !o.GoneSince.IsZero() && o.GoneSince.Before(s.GoneSince) {
		s.GoneSince = o.GoneSince
	}
	s.LastError = errors.Join(s.LastError, o.LastError)
	return s
}

func sum[K comparable](a, b map[K]int64) map[K]int64 {
	if a == nil {
		return maps.Clone(b)
	}
	a = maps.Clone(a)
	for k, n := range b {
		a[k] += n
	}
	return a
}

// counts is what Stats is a copy of. What happens for each event is atomic,
// the rest is rare.
type counts struct {
	events, bookmarks atomic.Int64
	panics            contain.Counter
	// contacted is when, counted from begun, plus one; 0: never. Counted so it
	// cannot jump when the clock is set.
	contacted atomic.Int64
	begun     time.Time
	open      atomic.Pointer[openWatch] // nil: none

	mu sync.Mutex
	s  Stats // without the members above
}

func (c *counts) event()              { c.events.Add(1) }
func (c *counts) bookmark()           { c.bookmarks.Add(1) }
func (c *counts) contact(t time.Time) { c.contacted.Store(c.offset(t)) }

func (c *counts) offset(t time.Time) int64 { return int64(t.Sub(c.begun)) + 1 }

// watchOpened notes when a watch was opened. As such that teaches nothing: the server
// may end it with the first event.
func (c *counts) watchOpened(t time.Time, received *transfer.Transfer) {
	c.open.Store(&openWatch{opened: t, received: received})
}

// openWatch is a watch that has not ended.
type openWatch struct {
	opened   time.Time
	received *transfer.Transfer
}

// quiet is for how long nothing has come: not a part of an event either, which may have been
// on its way since the watch was opened.
func (w *openWatch) quiet() time.Duration {
	if since, partial := w.received.PartialSince(); partial {
		return since.Sub(w.opened)
	}
	return time.Since(w.opened)
}

// watchEnded keeps what the watch that was opened last has shown. One that the server has
// ended well, and not at once, has shown that nothing was missed when it was opened.
func (c *counts) watchEnded(well bool) {
	contacted := c.lastContact()
	if open := c.open.Load(); well && open != nil {
		contacted = max(contacted, c.offset(open.opened))
	}
	c.contacted.Store(contacted)
	c.open.Store(nil)
}

// lastContact is the later of contacted and of when the open watch was opened, if that was
// quiet for long enough to have shown that nothing was missed.
func (c *counts) lastContact() int64 {
	open := c.open.Load() // first: watchEnded stores it in the other one, and then takes it away
	contacted := c.contacted.Load()
	if open != nil && open.quiet() >= steady {
		return max(contacted, c.offset(open.opened))
	}
	return contacted
}

func (c *counts) list(cause ListCause) {
	c.change(func(s *Stats) {
		if s.Lists == nil {
			s.Lists = map[ListCause]int64{}
		}
		s.Lists[cause]++
	})
}

func (c *counts) resume(reason ResumeReason) {
	c.change(func(s *Stats) {
		if s.Resumes == nil {
			s.Resumes = map[ResumeReason]int64{}
		}
		s.Resumes[reason]++
	})
}

func (c *counts) difference(result DifferenceResult) {
	c.change(func(s *Stats) {
		if s.Differences == nil {
			s.Differences = map[DifferenceResult]int64{}
		}
		s.Differences[result]++
	})
}

func (c *counts) merged(objects, bytes int64) {
	c.difference(DifferenceApplied)
	c.change(func(s *Stats) {
		s.DifferenceObjects += objects
		s.DifferenceBytes += bytes
	})
}

func (c *counts) streamed()    { c.change(func(s *Stats) { s.StreamingLists++ }) }
func (c *counts) paged()       { c.change(func(s *Stats) { s.PagedLists++ }) }
func (c *counts) page()        { c.change(func(s *Stats) { s.Pages++ }) }
func (c *counts) fallback()    { c.change(func(s *Stats) { s.StreamingFallbacks++ }) }
func (c *counts) watch()       { c.change(func(s *Stats) { s.Watches++ }) }
func (c *counts) poll()        { c.change(func(s *Stats) { s.Polls++ }) }
func (c *counts) stale()       { c.change(func(s *Stats) { s.Stale++ }) }
func (c *counts) decodeError() { c.change(func(s *Stats) { s.DecodeErrors++ }) }

func (c *counts) failed(err error)     { c.change(func(s *Stats) { s.LastError = err }) }
func (c *counts) gone(since time.Time) { c.change(func(s *Stats) { s.GoneSince = since }) }

func (c *counts) change(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counts) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Lists, s.Resumes, s.Differences = maps.Clone(s.Lists), maps.Clone(s.Resumes), maps.Clone(s.Differences)
	s.Events, s.Bookmarks = c.events.Load(), c.bookmarks.Load()
	s.Panics = c.panics.Count()
	if t := c.lastContact(); t != 0 {
		s.LastContact = c.begun.Add(time.Duration(t - 1))
	}
	return s
}
