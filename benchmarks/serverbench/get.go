package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// getTask is what a reading client asks for.
type getTask struct {
	Access tested.Access
	Path   string
	Accept string
	Gzip   bool
	// Stream: the answer has no end of its own, but is a watch that begins with
	// a list, whose end a bookmark marks.
	Stream bool
	// Clients is how many ask at once, each with a connection of its own.
	Clients int
	// Verify: what is received is looked at as a whole, and objects are counted.
	// It costs the client time.
	Verify bool
	// Within is when the clients give up; 0: never.
	Within time.Duration
}

// got is what a reading client received.
type got struct {
	CPU  time.Duration // of the client's process
	Each []received    // by client
}

// received is one answer.
type received struct {
	Bytes   int64
	Objects int    // if it was verified
	Err     string // why it is not complete
	Took    time.Duration
}

// initialEventsEnd is the annotation of the bookmark that ends a streamed list
// (KEP-3157).
const initialEventsEnd = "k8s.io/initial-events-end"

// get is a process that reads.
func get(ctx context.Context, p *process.Parent) error {
	var task getTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	if task.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, task.Within)
		defer cancel()
	}
	answers := make([]*answer, task.Clients)
	for i := range answers {
		a := &answer{task: &task, done: make(chan struct{})}
		if task.Verify {
			a.verifier = newVerifier(task)
		}
		answers[i] = a
	}
	var connections []*load.Conn
	for range answers {
		c, err := dial(ctx, task.Access)
		if err != nil {
			return err
		}
		connections = append(connections, c)
	}
	for i, a := range answers {
		a.begun = time.Now()
		if err := connections[i].Send(task.request(), a); err != nil {
			return err
		}
	}
	var found got
	for i, a := range answers {
		select {
		case <-a.done:
		case <-ctx.Done():
		}
		connections[i].Close()
		<-a.done
		found.Each = append(found.Each, a.received)
	}
	var err error
	if found.CPU, err = measure.OwnCPU(); err != nil {
		return err
	}
	return p.Send(found)
}

// dial connects to a server.
func dial(ctx context.Context, a tested.Access) (*load.Conn, error) {
	where, err := url.Parse(a.URL)
	if err != nil {
		return nil, err
	}
	config, err := a.TLS()
	if err != nil {
		return nil, err
	}
	return load.Dial(ctx, where.Host, config, load.Options{})
}

func (t *getTask) request() load.Request {
	header := []hpack.HeaderField{{Name: "accept", Value: t.Accept}}
	if t.Gzip {
		header = append(header, hpack.HeaderField{Name: "accept-encoding", Value: "gzip"})
	}
	return load.Request{Path: t.Path, Header: header}
}

// answer receives one answer; it implements load.Receiver.
type answer struct {
	received
	task     *getTask
	begun    time.Time
	status   int
	gzipped  bool
	carry    []byte // the end of the last piece, where the mark may have begun
	refusal  []byte // the beginning of an answer that is an error
	verifier *verifier
	ended    bool
	done     chan struct{}
}

// Answer implements load.Receiver.
func (a *answer) Answer(status int, header []hpack.HeaderField) {
	a.status = status
	for _, h := range header {
		if h.Name == "content-encoding" && h.Value == "gzip" {
			a.gzipped = true
		}
	}
}

// Data implements load.Receiver.
func (a *answer) Data(piece []byte, _ time.Time) {
	if a.ended {
		return
	}
	a.Bytes += int64(len(piece))
	if a.status != 200 {
		a.refusal = append(a.refusal, piece[:min(len(piece), 1<<10-len(a.refusal))]...)
		return
	}
	if a.verifier != nil {
		if err := a.verifier.write(piece); err != nil {
			a.finish(err)
			return
		}
	}
	if a.task.Stream && a.marked(piece) {
		a.finish(nil)
	}
}

// marked reports whether the stream has come to the end of its list.
func (a *answer) marked(piece []byte) bool {
	const mark = initialEventsEnd
	a.carry = append(a.carry, piece[:min(len(piece), len(mark))]...)
	if bytes.Contains(piece, []byte(mark)) || bytes.Contains(a.carry, []byte(mark)) {
		return true
	}
	end := a.carry
	if len(piece) > len(mark) {
		end = piece
	}
	a.carry = append(a.carry[:0], end[max(len(end)-len(mark)+1, 0):]...)
	return false
}

// End implements load.Receiver.
func (a *answer) End(err error) {
	if a.ended {
		return
	}
	switch {
	case err != nil:
	case a.status != 200:
		err = fmt.Errorf("answered %d: %s", a.status, a.refusal)
	case a.task.Stream:
		err = errors.New("the stream ended before its list did")
	}
	a.finish(err)
}

// finish is called by the connection's reader, once.
func (a *answer) finish(err error) {
	a.ended = true
	a.Took = time.Since(a.begun)
	if err == nil && a.task.Gzip != a.gzipped {
		err = fmt.Errorf("gzipped: %t, asked for: %t", a.gzipped, a.task.Gzip)
	}
	if a.verifier != nil {
		var wrong error
		if a.Objects, wrong = a.verifier.end(); err == nil {
			err = wrong
		}
	}
	if err != nil {
		a.Err = err.Error()
	}
	close(a.done)
}
