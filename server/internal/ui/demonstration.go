package ui

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
)

const (
	// Unlimited is the pace of an answer that is not slowed.
	Unlimited = -1
	// maxDemonstrations bounds the watches that can be slowed.
	maxDemonstrations = 64
	maxNameLength     = 64
)

// Demonstrations are watches whose clients seem to read slowly. They show what a slow client
// costs the others, and itself.
type Demonstrations struct {
	blockedFor time.Duration // after which an answer ends that is not read

	mu   sync.Mutex
	open map[demonstration]*PacedWriter
}

type demonstration struct{ user, name string }

func newDemonstrations() *Demonstrations {
	return &Demonstrations{blockedFor: 30 * time.Second, open: map[demonstration]*PacedWriter{}}
}

// Open returns a writer for an answer that its user can slow; nil if the name is empty or too
// long, or there are too many. The caller closes it.
func (d *Demonstrations) Open(ctx context.Context, w http.ResponseWriter, user auth.User, name string) *PacedWriter {
	if name == "" || len(name) > maxNameLength {
		return nil
	}
	p := &PacedWriter{of: d, key: demonstration{user.Name, name}, ctx: ctx, answer: w, rate: Unlimited, changed: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[p.key] != nil || len(d.open) >= maxDemonstrations {
		return nil
	}
	d.open[p.key] = p
	return p
}

func (d *Demonstrations) setPace(w http.ResponseWriter, r *http.Request, name string, user auth.User) {
	rate, err := strconv.ParseInt(r.URL.Query().Get("bytesPerSecond"), 10, 64)
	if err != nil || rate < Unlimited {
		http.Error(w, "bytesPerSecond: it is a number, 0 for nothing or -1 for no limit", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	p := d.open[demonstration{user.Name, name}]
	d.mu.Unlock()
	if p == nil {
		http.Error(w, "there is no such demonstration, or it is another user's", http.StatusNotFound)
		return
	}
	p.setRate(rate)
	w.WriteHeader(http.StatusNoContent)
}

// PacedWriter writes an answer as slowly as its pace says. It does not unwrap, so that nothing
// goes around it.
type PacedWriter struct {
	of     *Demonstrations
	key    demonstration
	ctx    context.Context //nolint:containedctx // a Write has no context of its own
	answer http.ResponseWriter

	mu      sync.Mutex
	rate    int64         // bytes in a second
	changed chan struct{} // closed when rate changes
}

// Close ends the demonstration.
func (p *PacedWriter) Close() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	delete(p.of.open, p.key)
}

func (p *PacedWriter) setRate(rate int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
	close(p.changed)
	p.changed = make(chan struct{})
}

// Header implements http.ResponseWriter.
func (p *PacedWriter) Header() http.Header { return p.answer.Header() }

// WriteHeader implements http.ResponseWriter.
func (p *PacedWriter) WriteHeader(code int) { p.answer.WriteHeader(code) }

// FlushError implements flushing for http.ResponseController.
func (p *PacedWriter) FlushError() error { return http.NewResponseController(p.answer).Flush() }

var errNotRead = errors.New("the client of the demonstration does not read")

// pacedBytes is how much is sent at a time.
const pacedBytes = 1 << 10

// Write implements http.ResponseWriter. It takes as long as the pace says.
func (p *PacedWriter) Write(b []byte) (written int, err error) {
	for written < len(b) && err == nil {
		rest := b[written:]
		if !p.unlimited() {
			rest = rest[:min(len(rest), pacedBytes)]
			if err = p.wait(len(rest)); err != nil {
				break
			}
		}
		var n int
		n, err = p.answer.Write(rest)
		written += n
		if len(rest) < len(b) && err == nil {
			err = p.FlushError()
		}
	}
	return written, err
}

func (p *PacedWriter) unlimited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rate == Unlimited
}

// wait takes as long as a number of bytes do at the present pace. It fails where a client would
// lose its connection because it does not read.
func (p *PacedWriter) wait(size int) error {
	blocked := time.NewTimer(p.of.blockedFor)
	defer blocked.Stop()
	begin := time.Now()
	for {
		p.mu.Lock()
		rate, changed := p.rate, p.changed
		p.mu.Unlock()
		if rate == Unlimited {
			return nil
		}
		var enough <-chan time.Time
		if rate > 0 {
			enough = time.After(time.Until(begin.Add(time.Duration(float64(size) / float64(rate) * float64(time.Second)))))
		}
		select {
		case <-enough:
			return nil
		case <-changed:
		case <-blocked.C:
			return errNotRead
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}
