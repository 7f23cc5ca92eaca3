package audit

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// The modes of a backend, by kube-apiserver's names.
const (
	// ModeBatch hands events over by a queue: no request waits for the backend.
	ModeBatch = "batch"
	// ModeBlocking has a request wait until the backend has taken each of its events, or
	// has failed to.
	ModeBlocking = "blocking"
	// ModeBlockingStrict is ModeBlocking, and a request fails with 500 before anything
	// comes of it if its first event, of the stage RequestReceived, cannot be stored.
	ModeBlockingStrict = "blocking-strict"
)

var modes = []string{ModeBatch, ModeBlocking, ModeBlockingStrict}

func completeMode(flag string, mode *string) error {
	setDefault(mode, ModeBatch)
	if !slices.Contains(modes, *mode) {
		return fmt.Errorf("--%s %q is none of %s", flag, *mode, strings.Join(modes, ", "))
	}
	return nil
}

// sink takes events over. Its methods are called concurrently.
type sink interface {
	// add takes an event over, whose parts the caller must not modify later. It reports
	// whether the request may go on.
	add(event *auditinternal.Event) bool
	// close ends that; await waits until the events are delivered, or ctx ends, and end
	// releases the backend.
	close()
	await(ctx context.Context)
	end()
}

// newSink returns what delivers events in a mode; the limits are for ModeBatch.
func newSink(b backend, mode string, l limits, m *metrics, logger *slog.Logger) sink {
	switch mode {
	case ModeBlocking, ModeBlockingStrict:
		return newDirect(b, mode == ModeBlockingStrict, m, logger)
	}
	return newQueue(b, l, m, logger)
}

// direct delivers events on the goroutines of their requests.
type direct struct {
	backend backend
	losses  losses
	strict  bool

	mu         sync.Mutex
	closed     bool
	delivering sync.WaitGroup // no add begins when closed
	done       chan struct{}  // closed when the last one after close has ended
}

func newDirect(b backend, strict bool, m *metrics, logger *slog.Logger) *direct {
	return &direct{backend: b, strict: strict, done: make(chan struct{}), losses: losses{plugin: b.plugin, metrics: m, logger: logger}}
}

// add implements sink. It blocks as long as the backend does.
func (d *direct) add(event *auditinternal.Event) bool {
	own := *event // truncation writes to it
	own.Annotations = maps.Clone(event.Annotations)
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		d.losses.count(map[string]int{d.backend.plugin: 1})
		return !d.strict
	}
	d.delivering.Add(1)
	d.mu.Unlock()
	defer d.delivering.Done()
	lost := d.backend.send([]*auditinternal.Event{&own})
	d.losses.count(lost)
	for _, n := range lost {
		if n > 0 && d.strict {
			return false
		}
	}
	return true
}

func (d *direct) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	go func() { // ends with the last event, as long as the backend does not hang
		defer close(d.done)
		d.delivering.Wait()
	}()
}

func (d *direct) await(ctx context.Context) { awaitDone(ctx, d.done) }

func (d *direct) end() { d.backend.end(d.done) }
