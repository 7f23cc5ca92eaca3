package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Answered is the whole answer to a request.
type Answered struct {
	Status int
	Body   []byte
	Err    error // the answer did not come, or not all of it
}

// Check returns an error unless the status is one of those wanted; 0 stands for
// all of success.
func (a Answered) Check(wanted ...int) error {
	if a.Err != nil {
		return a.Err
	}
	for _, w := range wanted {
		if a.Status == w || w == 0 && a.Status/100 == 2 {
			return nil
		}
	}
	return fmt.Errorf("status %d: %.300s", a.Status, a.Body)
}

// whole gathers an answer.
type whole struct {
	answer Answered
	done   func(Answered)
}

// Answer implements Receiver.
func (w *whole) Answer(status int, _ []hpack.HeaderField) { w.answer.Status = status }

// Data implements Receiver.
func (w *whole) Data(piece []byte, _ time.Time) {
	w.answer.Body = append(w.answer.Body, piece...)
}

// End implements Receiver.
func (w *whole) End(err error) {
	w.answer.Err = err
	w.done(w.answer)
}

// Do sends a request and waits for its answer.
func (c *Conn) Do(ctx context.Context, r Request) Answered {
	answer := make(chan Answered, 1)
	if err := c.Send(r, &whole{done: func(a Answered) { answer <- a }}); err != nil {
		return Answered{Err: err}
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
		return Answered{Err: ctx.Err()}
	}
}

// Object is what a writer writes: by PUT to Path, without a resourceVersion, so
// that the last write wins.
type Object struct {
	Path string
	Body []byte
	sent int // where in Body the time is written
}

// SentAnnotation is what an Object must carry, with SentPlaceholder as its
// value, so that its time of sending can be written over that.
const (
	SentAnnotation  = sentKey
	SentPlaceholder = "0000000000000000000"
)

// WriterOptions of a Writer.
type WriterOptions struct {
	Address string
	TLS     *tls.Config
	Header  []hpack.HeaderField
	Objects []Object
	// InFlight bounds the writes that are not answered; default 64, and never
	// more than there are objects, so that no object is written by two at once,
	// one of which would have to try again. An update that has to wait carries
	// the time when it was due.
	InFlight int
}

// Writer updates objects in turn, at a fixed rate whatever the server does.
type Writer struct {
	options WriterOptions
	conn    *Conn
	next    int
}

// Written is what a run of a Writer did.
type Written struct {
	// Sent is how many updates were answered with success, of Due.
	Sent, Due int64
	Errors    []string
	// Latency is from when an update was due until it was answered.
	Latency Histogram
}

// NewWriter connects.
func NewWriter(ctx context.Context, o WriterOptions) (*Writer, error) {
	if o.InFlight <= 0 {
		o.InFlight = 64
	}
	if len(o.Objects) == 0 {
		return nil, errors.New("a writer needs objects")
	}
	o.InFlight = min(o.InFlight, len(o.Objects))
	for i := range o.Objects {
		object := &o.Objects[i]
		mark := []byte(`"` + sentKey + `":"` + SentPlaceholder)
		if object.sent = bytes.Index(object.Body, mark); object.sent < 0 {
			return nil, fmt.Errorf("object %s has no annotation %s", object.Path, sentKey)
		}
		object.sent += len(mark) - sentDigits
	}
	conn, err := Dial(ctx, o.Address, o.TLS, Options{})
	if err != nil {
		return nil, err
	}
	return &Writer{options: o, conn: conn}, nil
}

// Close disconnects.
func (w *Writer) Close() { w.conn.Close() }

// Run writes rate updates a second for a duration, and waits for the answers.
func (w *Writer) Run(ctx context.Context, rate float64, duration time.Duration) (Written, error) {
	return w.run(ctx, rate, int64(rate*duration.Seconds()), nil)
}

// RunUntil writes rate updates a second until stop is closed, and waits for the answers.
func (w *Writer) RunUntil(ctx context.Context, rate float64, stop <-chan struct{}) (Written, error) {
	return w.run(ctx, rate, math.MaxInt64, stop)
}

func (w *Writer) run(ctx context.Context, rate float64, most int64, stop <-chan struct{}) (Written, error) {
	var out Written
	var mu sync.Mutex
	slots := make(chan struct{}, w.options.InFlight)
	header := append([]hpack.HeaderField{{Name: "content-type", Value: "application/json"}}, w.options.Header...)
	begun, n := time.Now(), int64(0)
	for ; n < most && !isClosed(stop); n++ {
		due := begun.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			if err := pause(ctx, wait); err != nil {
				return out, err
			}
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return out, ctx.Err()
		}
		err := w.conn.Send(w.request(due, header), &whole{done: func(a Answered) {
			mu.Lock()
			defer mu.Unlock()
			if err := a.Check(0); err != nil && len(out.Errors) < 3 {
				out.Errors = append(out.Errors, err.Error())
			} else if err == nil {
				out.Sent++
				out.Latency.Add(time.Since(due))
			}
			<-slots
		}})
		if err != nil {
			return out, err
		}
	}
	for range w.options.InFlight {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
	mu.Lock() // so that the last answer's counts are seen
	defer mu.Unlock()
	out.Due = n
	return out, nil
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

func (w *Writer) request(due time.Time, header []hpack.HeaderField) Request {
	object := w.options.Objects[w.next]
	w.next = (w.next + 1) % len(w.options.Objects)
	body := bytes.Clone(object.Body)
	strconv.AppendInt(body[:object.sent], due.UnixNano(), 10) // 19 digits until the year 2286
	return Request{Method: "PUT", Path: object.Path, Header: header, Body: body}
}

// Post sends requests over one connection, inFlight at a time, and returns the
// first error; answers with a status in also count as success. It is for the
// preparation of a measurement.
func Post(ctx context.Context, c *Conn, inFlight int, requests func(yield func(Request) bool), also ...int) error {
	slots := make(chan error, inFlight)
	for range inFlight {
		slots <- nil
	}
	var failed error
	for r := range requests {
		if failed = errors.Join(failed, <-slots); failed != nil {
			inFlight--
			break
		}
		done := func(a Answered) {
			err := a.Check(append(also, 0)...)
			if err != nil {
				err = fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
			}
			slots <- err
		}
		if err := c.Send(r, &whole{done: done}); err != nil {
			slots <- err
		}
	}
	for range inFlight {
		select {
		case err := <-slots:
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return failed
}
