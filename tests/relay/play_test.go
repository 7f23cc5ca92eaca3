package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// play has clients write, watch and list while faults are made, and holds what they have seen
// to what was written.
type play struct {
	t        *testing.T
	cluster  *cluster
	writers  []*writer
	written  *recorder // what the writers do
	watching *recorder
	listing  *recorder
	answers  atomic.Int64 // to lists

	endWriting, endWatching, endListing context.CancelFunc
	writing                             sync.WaitGroup
}

// begin starts the clients.
func begin(t *testing.T, c *cluster) *play {
	p := &play{t: t, cluster: c, written: &recorder{t: t}, watching: &recorder{t: t}, listing: &recorder{t: t}}
	p.watching.stop, p.endWatching = context.WithCancel(t.Context())
	p.listing.stop, p.endListing = context.WithCancel(t.Context())
	for n := range 3 {
		to, _ := mapsAt(t, c.behind.Addr())
		p.writers = append(p.writers, p.written.newWriter(to, n))
	}
	p.write()
	for n := range 12 {
		from, _ := mapsAt(t, c.front.Addr())
		selector := []string{"", "", "color=red"}[n%3]
		p.watching.wait.Go(func() { p.watching.watch(from, fmt.Sprintf("watcher-%d %s", n, selector), selector) })
	}
	for n := range 3 {
		from, raw := mapsAt(t, hostOf(t, c.relays[n%len(c.relays)].server))
		if n == 2 {
			from, raw = mapsAt(t, c.front.Addr())
		}
		p.listing.wait.Go(func() { p.listing.read(from, raw, fmt.Sprint("lister-", n), &p.answers, p.written) })
	}
	return p
}

// write has the writers go on.
func (p *play) write() {
	ctx, cancel := context.WithCancel(p.t.Context())
	p.endWriting = cancel
	for _, w := range p.writers {
		p.writing.Go(func() { w.run(ctx) })
	}
}

// rest ends the writers, each after the write that it is at.
func (p *play) rest() {
	p.endWriting()
	p.writing.Wait()
}

// suffer makes faults for some time, and until the least number of lists has been answered: on
// a busy machine few are between faults.
func (p *play) suffer(d time.Duration, fault func()) {
	end := time.NewTimer(d)
	defer end.Stop()
	ticker := time.NewTicker(400 * time.Millisecond)
	defer ticker.Stop()
	for over := false; !over || p.answers.Load() < 20; {
		select {
		case <-ticker.C:
			fault()
		case <-end.C:
			if over {
				p.t.Fatalf("only %d lists were answered", p.answers.Load())
			}
			over = true
			end.Reset(*patience)
		}
	}
}

// end heals all networks, waits until each watcher has seen everything, and checks. Without
// exact, a watcher may be sent the latest change of each object in place of several.
func (p *play) end(exact bool) {
	p.rest()
	for _, relay := range p.cluster.relays {
		relay.link.Heal()
	}
	last, _ := mapsAt(p.t, p.cluster.behind.Addr())
	p.written.last(last)
	late := time.AfterFunc(*patience, func() {
		defer p.endWatching()
		p.t.Errorf("not every watcher has reached the end within %s", *patience)
		for i, relay := range p.cluster.relays {
			p.t.Logf("relay %d may be %v s old", i, metric(p.t, relay.server, "levelwire_relay_staleness_seconds"))
		}
	})
	p.watching.wait.Wait()
	late.Stop()
	p.endWatching()
	p.endListing()
	p.listing.wait.Wait()
	r := p.written
	r.views, r.lists, r.ages = p.watching.views, p.listing.lists, p.listing.ages
	r.check(exact)
}
