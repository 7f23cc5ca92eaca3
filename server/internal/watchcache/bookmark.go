package watchcache

import "time"

const (
	bookmarkInterval = time.Minute
	bookmarkSpread   = 0.25            // of the interval, both ways
	bookmarkLead     = 2 * time.Second // before the deadline
)

// Bookmarks says when a watcher is due a bookmark: about once a minute, and
// once about two seconds before its deadline, so that a client that resumes
// does so from a fresh revision. It is a value without clock or randomness of
// its own.
type Bookmarks struct {
	next     time.Time
	final    time.Time // zero: no deadline, or already sent
	interval time.Duration
}

// NewBookmarks starts a schedule. A zero deadline means none. jitter, in
// [0,1), moves the watcher's interval within a quarter around a minute, so
// that watchers that began together do not stay together.
func NewBookmarks(now, deadline time.Time, jitter float64) Bookmarks {
	interval := time.Duration(float64(bookmarkInterval) * (1 + bookmarkSpread*(2*jitter-1)))
	b := Bookmarks{interval: interval, next: now.Add(interval)}
	if !deadline.IsZero() {
		// A watch shorter than the lead is due one at once.
		b.final = deadline.Add(-bookmarkLead)
	}
	return b
}

// Next returns when the next bookmark is due; it may lie in the past.
func (b *Bookmarks) Next() time.Time {
	if !b.final.IsZero() && b.final.Before(b.next) {
		return b.final
	}
	return b.next
}

// Due reports whether a bookmark is due.
func (b *Bookmarks) Due(now time.Time) bool { return !now.Before(b.Next()) }

// Sent says that a bookmark was sent and sets the next one.
func (b *Bookmarks) Sent(now time.Time) {
	if !b.final.IsZero() && !now.Before(b.final) {
		b.final = time.Time{}
	}
	b.next = now.Add(b.interval)
}
