package histories

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// scenario is a world and what happens in it, round by round. In each round all
// clients are silenced, something happens, and they come back.
type scenario struct {
	name     string
	servers  int
	settings settings
	// exact: history is never gone, nor compacted.
	exact  bool
	rounds []round
}

type round struct {
	how silence
	// away is what happens while the clients are.
	away func(*testing.T, *world)
	// gone: the history that they need is gone then.
	gone bool
	// rough: they are cut off again and again when they come back, anywhere in
	// what they are told. Client-go's reflectors list again then as they like.
	rough bool
}

// scenarios are the gaps that clients come back from.
var scenarios = []scenario{
	{name: "the server is killed", servers: 1, exact: true, rounds: []round{
		{how: refused, away: func(t *testing.T, w *world) {
			w.meanwhile(t, task{90, 12}, func() { w.restart(t, syscall.SIGKILL) })
		}},
		{how: stalled, away: func(t *testing.T, w *world) {
			w.meanwhile(t, task{60, 6}, func() { w.restart(t, syscall.SIGKILL); w.restart(t, syscall.SIGTERM) })
		}},
	}},
	{name: "the store is compacted, and a day passes", servers: 1, rounds: []round{
		{how: hung, away: func(t *testing.T, w *world) {
			w.write(t, task{90, 15})
			w.compact(t)
			w.restart(t, syscall.SIGKILL)
			w.write(t, task{30, 3})
		}},
		{how: hung, away: func(t *testing.T, w *world) { // as long as it can be remembered
			w.write(t, task{60, 15})
			w.compact(t)
			w.pass(t, tombstoneAge-time.Hour)
			w.restart(t, syscall.SIGTERM)
		}},
		{how: hung, gone: true, away: func(t *testing.T, w *world) { // longer
			w.write(t, task{60, 15})
			w.compact(t)
			w.pass(t, tombstoneAge+time.Hour)
			w.restart(t, syscall.SIGKILL)
			w.write(t, task{30, 3})
		}},
	}},
	{name: "others compact the store", servers: 1, rounds: []round{
		{how: stalled, away: func(t *testing.T, w *world) { // the server remembers
			w.write(t, task{60, 9})
			w.compactOutside(t)
			w.write(t, task{30, 3})
		}},
		{how: hung, gone: true, away: func(t *testing.T, w *world) {
			w.write(t, task{60, 9})
			w.compactOutside(t)
			w.restart(t, syscall.SIGKILL)
			w.write(t, task{30, 3})
		}},
		{how: hung, away: func(t *testing.T, w *world) { // behind the gap all is as it was
			w.write(t, task{60, 9})
			w.compact(t)
			w.restart(t, syscall.SIGTERM)
		}},
	}},
	{name: "ten deletions are remembered", servers: 1, settings: settings{Tombstones: 10}, rounds: []round{
		{how: hung, away: func(t *testing.T, w *world) {
			w.write(t, task{60, 9})
			w.compact(t)
			w.restart(t, syscall.SIGKILL)
		}},
		{how: hung, gone: true, away: func(t *testing.T, w *world) {
			w.write(t, task{60, 30})
			w.compact(t)
			w.restart(t, syscall.SIGKILL)
		}},
	}},
	{name: "sixteen kilobytes of deletions are remembered", servers: 1, settings: settings{TombstoneBytes: 16 << 10}, rounds: []round{
		{how: hung, away: func(t *testing.T, w *world) {
			w.write(t, task{60, 9})
			w.compact(t)
			w.restart(t, syscall.SIGKILL)
		}},
		{how: hung, gone: true, away: func(t *testing.T, w *world) {
			w.write(t, task{60, 60})
			w.compact(t)
			w.restart(t, syscall.SIGTERM)
		}},
	}},
	{name: "coalesced history is turned off", servers: 1, settings: settings{ExactHistory: true}, rounds: []round{
		{how: refused, away: func(t *testing.T, w *world) {
			w.meanwhile(t, task{60, 9}, func() { w.restart(t, syscall.SIGKILL) })
		}},
		{how: hung, gone: true, away: func(t *testing.T, w *world) {
			w.write(t, task{60, 9})
			w.compact(t)
			w.restart(t, syscall.SIGKILL)
		}},
	}},
	{name: "three servers are restarted one by one", servers: 3, rounds: []round{
		{how: open, away: func(t *testing.T, w *world) {
			w.meanwhile(t, task{150, 21}, func() { w.roll(t) })
		}},
		{how: hung, away: func(t *testing.T, w *world) {
			w.write(t, task{60, 12})
			w.compact(t)
			w.meanwhile(t, task{60, 9}, func() { w.roll(t) })
		}},
	}},
	{name: "servers remember differently", servers: 3, rounds: []round{
		{how: hung, rough: true, away: func(t *testing.T, w *world) {
			w.write(t, task{120, 18})
			w.compact(t)
			w.hosts[w.random.IntN(3)].restart(t, syscall.SIGKILL) // the others have seen it all
			w.write(t, task{30, 3})
		}},
		{how: hung, rough: true, away: func(t *testing.T, w *world) {
			w.write(t, task{90, 12})
			w.compact(t)
			w.restart(t, syscall.SIGKILL)
			w.write(t, task{30, 3})
		}},
	}},
}

// TestHistories plays all scenarios, side by side. The first time clients are
// silenced as it is written above; after that, in any way.
func TestHistories(t *testing.T) {
	begin := time.Now()
	for seed, first := *seed, true; first || time.Since(begin) < *duration && !t.Failed(); seed, first = seed+1, false {
		t.Run(fmt.Sprintf("-histories.seed=%d", seed), func(t *testing.T) {
			for _, s := range scenarios {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.play(t, seed, first)
				})
			}
		})
	}
}

func (s scenario) play(t *testing.T, seed uint64, asWritten bool) {
	w := newWorld(t, seed, s.servers, s.settings)
	for i, r := range s.rounds {
		if r.how != open && !asWritten {
			r.how = []silence{refused, hung, stalled}[w.random.IntN(3)]
		}
		if r.gone && r.how == stalled {
			r.how = hung // what was on its way would still come
		}
		w.begin(t)
		w.silence(r.how)
		r.away(t, w)
		w.heal()
		if r.rough {
			w.cutAnywhere()
		}
		w.judge(t, r)
		if t.Failed() {
			t.Fatalf("in round %d; %v", i, w)
		}
	}
	// And they go on.
	w.begin(t)
	w.write(t, task{30, 6})
	w.judge(t, round{})
	if s.exact {
		w.judgeExactly(t)
	}
	t.Log(w)
}
