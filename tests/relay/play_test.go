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
	cluster  *cluster // nil if the servers are processes
	at       hosts
	writers  []*writer
	written  *recorder // what the writers do
	watching *recorder
	listing  *recorder
	answers  atomic.Int64 // to lists

	endWriting, endWatching, endListing context.CancelFunc
	writing                             sync.WaitGroup
}

// hosts are where the clients of a play reach the servers, with the administrator's token.
type hosts struct {
	upstream string   // of the writers
	front    string   // of the watchers: leads to any relay
	relays   []string // of those that list
}

// begin starts the clients of a cluster.
func begin(t *testing.T, c *cluster) *play {
	at := hosts{upstream: c.behind.Addr(), front: c.front.Addr()}
	for _, relay := range c.relays {
		at.relays = append(at.relays, hostOf(t, relay.server))
	}
	p := beginAt(t, at)
	p.cluster = c
	return p
}

// beginAt starts clients.
func beginAt(t *testing.T, at hosts) *play {
	p := &play{t: t, at: at, written: &recorder{t: t}, watching: &recorder{t: t}, listing: &recorder{t: t}}
	p.watching.stop, p.endWatching = context.WithCancel(t.Context())
	p.listing.stop, p.endListing = context.WithCancel(t.Context())
	for n := range 3 {
		to, _ := mapsAt(t, at.upstream)
		p.writers = append(p.writers, p.written.newWriter(to, n))
	}
	p.write()
	for n := range 12 {
		from, _ := mapsAt(t, at.front)
		selector := []string{"", "", "color=red"}[n%3]
		p.watching.wait.Go(func() { p.watching.watch(from, fmt.Sprintf("watcher-%d %s", n, selector), selector) })
	}
	for n := range 3 {
		from, raw := mapsAt(t, at.relays[n%len(at.relays)])
		if n == 2 {
			from, raw = mapsAt(t, at.front)
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
	var relays []*relayed
	if p.cluster != nil {
		relays = p.cluster.relays
	}
	for _, relay := range relays {
		relay.link.Heal()
	}
	last, _ := mapsAt(p.t, p.at.upstream)
	p.written.last(last)
	late := time.AfterFunc(*patience, func() {
		defer p.endWatching()
		p.t.Errorf("not every watcher has reached the end within %s", *patience)
		for i, relay := range relays {
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
