package audit

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authnv1 "k8s.io/api/authentication/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// backend is where events go.
type backend struct {
	plugin string
	// send delivers a batch, and returns how many of its events were lost, by plugin.
	// It may block for long. It is called by as many goroutines as the queue has senders.
	send func(batch []*auditinternal.Event) (lost map[string]int)
	// close releases what it holds; nil: nothing.
	close func() error
}

// queue holds the events that a backend has not got yet. add never blocks.
type queue struct {
	backend backend
	limits  limits
	losses  losses

	throttle   *rate.Limiter // of batches; nil: none
	unthrottle func()        // has no further batch wait for it

	wake chan struct{} // of length 1: there are events, or the queue is closing
	done chan struct{} // closed when all events have been sent after close

	mu      sync.Mutex
	pending []*auditinternal.Event
	events  int   // pending, and being sent
	bytes   int64 // of these
	closing bool
}

func newQueue(b backend, l limits, m *metrics, logger *slog.Logger) *queue {
	q := &queue{
		backend: b, limits: l, losses: losses{plugin: b.plugin, metrics: m, logger: logger},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if l.perSecond > 0 {
		q.throttle = rate.NewLimiter(rate.Limit(l.perSecond), l.burst)
	}
	open, unthrottle := context.WithCancel(context.Background())
	q.unthrottle = unthrottle
	go q.run(open)
	return q
}

const (
	// eventOverhead is what an event takes in memory beside what varies in length.
	eventOverhead = 1 << 10
	// elementOverhead is what an element of a slice or a map takes beside its strings.
	elementOverhead = 64
)

// sizeOf returns about how many bytes of memory an event holds. A client chooses the
// length of most of its fields, so all of them count, those alone left out that are
// constants of the server.
func sizeOf(e *auditinternal.Event) int64 {
	n := eventOverhead + len(e.AuditID) + len(e.RequestURI) + len(e.Verb) + len(e.UserAgent) + sizeOfUser(&e.User)
	if e.ImpersonatedUser != nil {
		n += sizeOfUser(e.ImpersonatedUser)
	}
	if e.AuthenticationMetadata != nil {
		n += len(e.AuthenticationMetadata.ImpersonationConstraint)
	}
	for _, ip := range e.SourceIPs {
		n += elementOverhead + len(ip)
	}
	if r := e.ObjectRef; r != nil {
		n += len(r.Resource) + len(r.Namespace) + len(r.Name) + len(r.UID) + len(r.APIGroup) + len(r.APIVersion) + len(r.ResourceVersion) + len(r.Subresource)
	}
	if s := e.ResponseStatus; s != nil {
		n += s.Size()
		if s.Details != nil {
			n += elementOverhead * len(s.Details.Causes)
		}
	}
	if e.RequestObject != nil {
		n += len(e.RequestObject.Raw)
	}
	if e.ResponseObject != nil {
		n += len(e.ResponseObject.Raw)
	}
	for key, value := range e.Annotations {
		n += elementOverhead + len(key) + len(value)
	}
	return int64(n)
}

func sizeOfUser(u *authnv1.UserInfo) int {
	n := u.Size() + elementOverhead*(len(u.Groups)+len(u.Extra))
	for _, values := range u.Extra {
		n += elementOverhead * len(values)
	}
	return n
}

// add implements sink: an event for which there is no room is lost, and the request goes
// on.
func (q *queue) add(event *auditinternal.Event) bool {
	size := sizeOf(event)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing || q.events >= q.limits.events || q.bytes+size > q.limits.bytes {
		q.losses.count(map[string]int{pluginBuffered: 1})
		return true
	}
	own := *event
	own.Annotations = maps.Clone(event.Annotations)
	q.pending = append(q.pending, &own)
	q.events++
	q.bytes += size
	if len(q.pending) == 1 || len(q.pending) == q.limits.batch {
		q.signal()
	}
	return true
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run sends batches until the queue is closed and empty. It throttles them until open ends:
// what is left at the end is sent at once.
func (q *queue) run(open context.Context) {
	defer close(q.done)
	slots := make(chan struct{}, q.limits.senders)
	var sending sync.WaitGroup
	defer sending.Wait()
	for {
		q.gather()
		batch := q.next()
		if len(batch) == 0 {
			return
		}
		slots <- struct{}{}
		if q.throttle != nil {
			_ = q.throttle.Wait(open) // an error says that the queue is closing
		}
		sending.Go(func() {
			defer func() { <-slots }()
			q.send(batch)
		})
	}
}

// gather waits for events, and then until a batch is full or its time is over. It returns
// at once when the queue is closing: without events only then.
func (q *queue) gather() {
	for {
		pending, closing := q.state()
		if pending > 0 || closing {
			break
		}
		<-q.wake
	}
	if q.limits.wait == 0 {
		return
	}
	timer := time.NewTimer(q.limits.wait)
	defer timer.Stop()
	for {
		if pending, closing := q.state(); closing || pending >= q.limits.batch {
			return
		}
		select {
		case <-q.wake:
		case <-timer.C:
			return
		}
	}
}

func (q *queue) state() (pending int, closing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending), q.closing
}

// next takes a batch.
func (q *queue) next() []*auditinternal.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.pending), q.limits.batch)
	batch := q.pending[:n:n]
	q.pending = q.pending[n:]
	if len(q.pending) == 0 {
		q.pending = nil // its array would grow without end
	}
	return batch
}

func (q *queue) send(batch []*auditinternal.Event) {
	sizes := int64(0) // before: truncation replaces objects
	for _, e := range batch {
		sizes += sizeOf(e)
	}
	lost := q.backend.send(batch)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events -= len(batch)
	q.bytes -= sizes
	q.losses.count(lost)
}

// close has the queue take no more events, and send what it holds.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closing = true
	q.unthrottle()
	q.signal()
}

// await waits until all is sent, or ctx ends.
func (q *queue) await(ctx context.Context) { awaitDone(ctx, q.done) }

func awaitDone(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// end releases the backend, unless it hangs, and counts what it has not taken.
func (q *queue) end() {
	q.backend.end(q.done)
	q.mu.Lock()
	defer q.mu.Unlock()
	if unsent := q.events; unsent > 0 {
		q.losses.countLast(map[string]int{pluginBuffered: unsent})
	}
}

// endGrace is how long a backend may need to end when its context has.
const endGrace = time.Second

// end releases the backend when done is closed, which says that it is not used any more;
// not at all if it hangs.
func (b *backend) end(done <-chan struct{}) {
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-done:
		if b.close != nil {
			_ = b.close() // every write was checked
		}
	case <-timer.C:
	}
}
