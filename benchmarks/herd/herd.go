package herd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options says which informers watch what.
type Options struct {
	Address string
	TLS     *tls.Config `json:"-"`
	// Nodes are those whose pods informers watch: one informer for each, and for
	// a node that is named twice two.
	Nodes []string
	// Everything is how many more there are that watch all pods.
	Everything int
}

// Herd is many informers. Its methods are for one goroutine.
type Herd struct {
	options   Options
	informers []*informer
	gate      gate
	running   sync.WaitGroup
	stop      context.CancelFunc
	since     time.Time // the gate was opened
	pause     func(context.Context, time.Duration) error
}

// Counts are what informers have done since the gate was opened.
type Counts struct {
	Streams int64 // streaming lists begun
	Lists   int64 // other lists begun
	Listed  int64 // lists of either kind that were complete
	Expired int64 // answers that a version has expired, as a status or within a stream
	Resumes int64 // watches from a version that were answered, and not by its having expired
	Busy    int64 // 429
	Bytes   int64 // of HTTP/2's frames that arrived
	// Errors says what else went wrong, and how often.
	Errors map[string]int64
}

// Report is how a herd is.
type Report struct {
	Counts
	Informers, Converged int
	// Everything is all pods, as far as it is known what is expected.
	Everything Digest
	// Calm is for how long the set of converged informers has not changed; 0
	// unless all have converged.
	Calm time.Duration
	// After is how long after the gate was opened each informer that has
	// converged came to hold what it should, in ascending order.
	After []time.Duration
}

// Gather starts a herd that holds everything already, from one list, and
// returns when all watch from its version on. ctx is for as long as the herd
// lives.
func Gather(ctx context.Context, o Options) (*Herd, error) {
	return gather(ctx, &Herd{options: o, pause: pause})
}

func gather(ctx context.Context, h *Herd) (*Herd, error) {
	h.gate.open = make(chan struct{})
	now, err := h.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range h.options.Nodes {
		h.informers = append(h.informers, &informer{herd: h, node: node})
	}
	for range h.options.Everything {
		h.informers = append(h.informers, &informer{herd: h})
	}
	ctx, h.stop = context.WithCancel(ctx)
	h.expect(now)
	h.Open()
	for n, i := range h.informers {
		i.gate, i.version, i.held = &h.gate, now.version, now.of(i.node).clone()
		h.running.Go(func() { i.run(ctx) })
		if n%50 < 49 && n < len(h.informers)-1 {
			continue
		}
		// Few at a time: the server is not to be measured yet.
		for h.Report().Converged <= n {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

// state is what a server holds, as one list shows it.
type state struct {
	version uint64
	all     Content
	nodes   map[string]*Content
}

func (s *state) of(node string) *Content {
	if node == "" {
		return &s.all
	}
	if c := s.nodes[node]; c != nil {
		return c
	}
	return &Content{}
}

// look lists everything, over a connection of its own that no gate holds up.
func (h *Herd) look(ctx context.Context) (*state, error) {
	now := &state{nodes: map[string]*Content{}}
	i := &informer{herd: h, report: func(o object) error {
		node, err := o.nodeName()
		if err != nil {
			return err
		}
		if now.nodes[node] == nil {
			now.nodes[node] = &Content{}
		}
		now.nodes[node].Set(o.key, o.version)
		return nil
	}}
	defer i.cut()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := i.stream(ctx); err != nil {
		return nil, fmt.Errorf("list everything: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.report = nil // what is written from now on is not part of it
	now.version, now.all = i.version, i.held.clone()
	var sum int
	for _, c := range now.nodes {
		sum += c.Digest().Objects
	}
	if sum != now.all.Digest().Objects {
		return nil, errors.New("list everything: it changed meanwhile")
	}
	return now, nil
}

// Expect asks the server what there is, and expects all informers to come to
// hold that. No client may write meanwhile.
func (h *Herd) Expect(ctx context.Context) error {
	now, err := h.look(ctx)
	if err != nil {
		return err
	}
	h.expect(now)
	return nil
}

func (h *Herd) expect(now *state) {
	for _, i := range h.informers {
		i.expect(now.of(i.node).Digest())
	}
}

// Cut closes all connections, and keeps informers from making new ones.
func (h *Herd) Cut() {
	h.gate.close()
	var cutting sync.WaitGroup
	for _, i := range h.informers {
		cutting.Go(i.cut)
	}
	cutting.Wait()
}

// Open lets informers connect, and counts from now on.
func (h *Herd) Open() {
	for _, i := range h.informers {
		i.mu.Lock()
		i.counts = Counts{}
		if i.conn != nil {
			i.counts.Bytes = -i.conn.Received()
		}
		i.mu.Unlock()
	}
	h.since = time.Now()
	h.gate.release()
}

// Report says how the informers are.
func (h *Herd) Report() Report {
	r := Report{Informers: len(h.informers), Counts: Counts{Errors: map[string]int64{}}}
	var last time.Time
	for _, i := range h.informers {
		i.mu.Lock()
		if !i.equal.IsZero() {
			r.Converged++
			r.After = append(r.After, max(i.equal.Sub(h.since), 0))
			if i.equal.After(last) {
				last = i.equal
			}
		}
		if i.node == "" {
			r.Everything = i.want
		}
		r.add(i.counts)
		if i.conn != nil {
			r.Bytes += i.conn.Received()
		}
		i.mu.Unlock()
	}
	slices.Sort(r.After)
	if r.Converged == r.Informers {
		r.Calm = time.Since(last)
	}
	return r
}

// At is how long it took until so many percent of the informers had caught up,
// if they have.
func (r Report) At(percent int) (time.Duration, bool) {
	n := (r.Informers*percent + 99) / 100
	if n == 0 || n > len(r.After) {
		return 0, false
	}
	return r.After[n-1], true
}

// Close ends the herd.
func (h *Herd) Close() {
	h.stop()
	h.Cut()
	h.gate.release()
	h.running.Wait()
}

func (c *Counts) add(d Counts) {
	c.Streams += d.Streams
	c.Lists += d.Lists
	c.Listed += d.Listed
	c.Expired += d.Expired
	c.Resumes += d.Resumes
	c.Busy += d.Busy
	c.Bytes += d.Bytes
	for text, n := range d.Errors {
		c.Errors[text] += n
	}
}

// note counts the end of a session.
func (c *Counts) note(s *session, err error) {
	switch {
	case errors.Is(err, errExpired):
		c.Expired++
		if s.asked == resume && s.status == http.StatusOK {
			c.Resumes-- // it was taken for one
		}
	case errors.Is(err, errBusy):
		c.Busy++
	case errors.Is(err, errFailed):
		c.error(fmt.Errorf("status %d: %.200s", s.status, s.body))
	case err != nil:
		c.error(err)
	}
}

// error counts an error, as long as there are few different ones.
func (c *Counts) error(err error) {
	if c.Errors == nil {
		c.Errors = map[string]int64{}
	}
	text, _, _ := strings.Cut(address.ReplaceAllString(err.Error(), "the server"), "\n")
	if errors.Is(err, context.DeadlineExceeded) {
		text = "no connection within 10 s"
	}
	if _, known := c.Errors[text]; !known && len(c.Errors) >= 5 {
		text = "others"
	}
	c.Errors[text]++
}

// address is what makes errors differ that are the same.
var address = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+:\d+->)?\d+\.\d+\.\d+\.\d+:\d+`)

// gate holds informers up while it is closed.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !closed(g.open)
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if closed(g.open) {
		g.open = make(chan struct{})
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !closed(g.open) {
		close(g.open)
	}
}
