package watchstream

import (
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// State is what a stream does.
type State string

// The states of a stream.
const (
	Idle    State = "idle"    // it has sent everything
	Queued  State = "queued"  // it waits for its turn among the streams of its connection
	Writing State = "writing" // the request's goroutine writes, or waits for the client to read
	Busy    State = "busy"    // it is being served at this moment: where it is is not known
)

// Status is an open stream at one moment.
type Status struct {
	ID       uint64 // counts from 1
	Opened   time.Time
	Deadline time.Time
	State    State
	Resource *resource.Resource
	Format   string // the media type
	User     auth.User
	Origin   Origin           // of the request
	Revision storage.Revision // that the client named; 0: none

	// The following are zero while the stream is Busy.
	Cursor watchcache.Cursor
	Events int64 // sent, bookmarks not counted
	Bytes  int64 // of the body, before compression and encryption
}

// openStreams are the streams that List shows.
type openStreams struct {
	mu    sync.Mutex // no other lock is taken while it is held
	first *Stream
	count int
	last  uint64
}

// openEntry is the place of a stream in the list. The fields but next and previous are not
// modified later.
type openEntry struct {
	next, previous *Stream // guarded by openStreams.mu
	id             uint64
	opened         int64 // Unix time in nanoseconds
}

func (o *openStreams) add(t *Stream) {
	opened := time.Now().UnixNano()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	o.count++
	t.entry = openEntry{next: o.first, id: o.last, opened: opened}
	if o.first != nil {
		o.first.entry.previous = t
	}
	o.first = t
}

func (o *openStreams) remove(t *Stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count--
	if t.entry.previous == nil {
		o.first = t.entry.next
	} else {
		t.entry.previous.entry.next = t.entry.next
	}
	if t.entry.next != nil {
		t.entry.next.entry.previous = t.entry.previous
	}
	t.entry.next, t.entry.previous = nil, nil
}

func (o *openStreams) all() []*Stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]*Stream, 0, o.count)
	for t := o.first; t != nil; t = t.entry.next {
		all = append(all, t)
	}
	return all
}

// progress is how far a stream was when its request's goroutine began to write, which may
// block for as long as the client does not read.
type progress struct {
	mu     sync.Mutex // no other lock is taken while it is held
	of     *Stream    // nil: it has ended
	cursor watchcache.Cursor
	events int64
	bytes  int64
}

// beginWriting publishes how far the stream is, for List. The request's goroutine owns it.
func (t *Stream) beginWriting(b *buffers) {
	p := &b.progress
	p.mu.Lock()
	p.of, p.cursor, p.events, p.bytes = t, t.watch.Cursor(), t.events, t.written()
	p.mu.Unlock()
	t.writing.Store(p)
}

// endWriting withdraws what beginWriting has published: the buffers are used for another
// stream next.
func (t *Stream) endWriting(b *buffers) {
	if t.writing.Load() == nil {
		return
	}
	t.writing.Store(nil)
	b.progress.mu.Lock()
	defer b.progress.mu.Unlock()
	b.progress.of, b.progress.cursor = nil, watchcache.Cursor{}
}

// Open returns how many streams List looks at.
func (s *Streams) Open() int {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	return s.open.count
}

// List calls yield with the status of every open stream that wanted accepts, the latest first,
// until it returns false. It costs the streams nothing but the moment in which one that is
// idle is looked at: a stream that is woken in that moment is served by its request's goroutine.
func (s *Streams) List(wanted func(*resource.Resource) bool, yield func(Status) bool) {
	for _, t := range s.open.all() {
		status := Status{
			ID: t.entry.id, Opened: time.Unix(0, t.entry.opened), Deadline: t.watch.Deadline(), State: Busy,
			User: t.record.User, Origin: t.origin, Revision: t.watch.Requested(),
		}
		if info := t.record.Info; info != nil {
			status.Resource = info.Resource
		}
		if status.Resource == nil || !wanted(status.Resource) {
			continue
		}
		status.Format = t.encoder.Form().ContentType()
		t.look(&status)
		if !yield(status) {
			return
		}
	}
}

// look adds what only the stream's owner knows, if that can be found out.
func (t *Stream) look(status *Status) {
	if t.owner.tryBorrow() {
		status.State = Idle
		status.Cursor, status.Events, status.Bytes = t.watch.Cursor(), t.events, t.written()
		if !t.owner.release() {
			t.handoff()
		}
		return
	}
	if p := t.writing.Load(); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.of == t {
			status.State = Writing
			status.Cursor, status.Events, status.Bytes = p.cursor, p.events, p.bytes
			return
		}
	}
	if c := t.scheduler; c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, queued := range c.awake { // which the scheduler does not touch while this lock is held
			if queued == t {
				status.State = Queued
				status.Cursor, status.Events, status.Bytes = t.watch.Cursor(), t.events, t.written()
				return
			}
		}
	}
}
