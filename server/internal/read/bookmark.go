package read

import (
	"time"

	"github.com/levelwire/levelwire/storage"
)

const (
	bookmarkInterval = time.Minute
	bookmarkSpread   = 0.25            // of the interval, both ways
	bookmarkLead     = 2 * time.Second // before the deadline
)

// Bookmark is a revision up to which a client has had all events of its watch.
type Bookmark struct {
	Revision storage.Revision
	// InitialEventsEnd says that the initial events have been sent with this.
	InitialEventsEnd bool
}

// TakeBookmark returns the bookmark that is due, and counts it as sent. It is false
// if none is due or there is no revision that a bookmark may name yet.
func (w *Watch) TakeBookmark() (b Bookmark, due bool) {
	if !w.wantsBookmarks || w.cursor.Initial() || w.AwaitsRevision() {
		return b, false
	}
	now := time.Now()
	if !w.initialEndDue && !w.bookmarks.due(now) {
		return b, false
	}
	b = Bookmark{Revision: w.cursor.Bookmark(), InitialEventsEnd: w.initialEndDue}
	if b.Revision == 0 || b.InitialEventsEnd && b.Revision < w.revision {
		return b, false
	}
	if !b.InitialEventsEnd {
		w.bookmarks.sent(now)
	}
	w.initialEndDue = false
	return b, true
}

// RequestBookmark makes a bookmark due besides the others: the client asks how far the watch is.
func (w *Watch) RequestBookmark() { w.bookmarks.periodic = time.Now() }

// BookmarkNow makes a bookmark due: the server ends the watch, and the client
// resumes from there at another one.
func (w *Watch) BookmarkNow() {
	now := time.Now()
	w.bookmarks = newBookmarkSchedule(now, now, 0)
}

// bookmarkSchedule says when a watch is due a bookmark: about once a minute, and
// once about two seconds before its deadline, so that a client that resumes does so
// from a recent revision. It has no clock or randomness of its own.
type bookmarkSchedule struct {
	periodic time.Time     // when the next one of those that come at intervals is due
	final    time.Time     // when the one before the deadline is; zero: there is no deadline, or it was sent
	interval time.Duration // between the periodic ones
}

// newBookmarkSchedule starts a schedule. A zero deadline means none. jitter, in
// [0,1), moves the watch's interval within a quarter around a minute, so that
// watches that began together do not stay together.
func newBookmarkSchedule(now, deadline time.Time, jitter float64) bookmarkSchedule {
	interval := time.Duration(float64(bookmarkInterval) * (1 + bookmarkSpread*(2*jitter-1)))
	s := bookmarkSchedule{interval: interval, periodic: now.Add(interval)}
	if !deadline.IsZero() {
		// A watch shorter than the lead is due one at once.
		s.final = deadline.Add(-bookmarkLead)
	}
	return s
}

// next returns when the next bookmark is due; it may lie in the past.
func (s *bookmarkSchedule) next() time.Time {
	if !s.final.IsZero() && s.final.Before(s.periodic) {
		return s.final
	}
	return s.periodic
}

// due reports whether a bookmark is due.
func (s *bookmarkSchedule) due(now time.Time) bool { return !now.Before(s.next()) }

// sent notes that a bookmark was sent, and schedules the next one.
func (s *bookmarkSchedule) sent(now time.Time) {
	if !s.final.IsZero() && !now.Before(s.final) {
		s.final = time.Time{}
	}
	s.periodic = now.Add(s.interval)
}
