package histories

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// scenario is a testbed and what happens in it, round by round. In each round all
// clients are silenced, something happens, and they come back.
type scenario struct {
	name     string
	servers  int
	members  int // of etcd, that the servers share; 0: they share one that does not fail
	settings settings
	// exact: history is never gone, nor compacted.
	exact  bool
	rounds []round
}

type round struct {
	how silence
	// away is what happens while the clients are.
	away func(*testing.T, *testbed)
	// gone: the history that they need is gone then.
	gone bool
	// rough: they are cut off again and again when they come back, anywhere in
	// what the server sends. Client-go's reflectors list again then as they like.
	rough bool
}

// scenarios are the gaps that clients come back from.
var scenarios = []scenario{
	{name: "the server is killed", servers: 1, exact: true, rounds: []round{
		{how: refused, away: func(t *testing.T, b *testbed) {
			b.meanwhile(t, task{90, 12}, func() { b.restart(t, syscall.SIGKILL) })
		}},
		{how: stalled, away: func(t *testing.T, b *testbed) {
			b.meanwhile(t, task{60, 6}, func() { b.restart(t, syscall.SIGKILL); b.restart(t, syscall.SIGTERM) })
		}},
	}},
	{name: "the store is compacted, and a day passes", servers: 1, rounds: []round{
		{how: hung, away: func(t *testing.T, b *testbed) {
			b.write(t, task{90, 15})
			b.compact(t)
			b.restart(t, syscall.SIGKILL)
			b.write(t, task{30, 3})
		}},
		{how: hung, away: func(t *testing.T, b *testbed) { // as long as it can be remembered
			b.write(t, task{60, 15})
			b.compact(t)
			b.pass(t, tombstoneAge-time.Hour)
			b.restart(t, syscall.SIGTERM)
		}},
		{how: hung, gone: true, away: func(t *testing.T, b *testbed) { // longer
			b.write(t, task{60, 15})
			b.compact(t)
			b.pass(t, tombstoneAge+time.Hour)
			b.restart(t, syscall.SIGKILL)
			b.write(t, task{30, 3})
		}},
	}},
	{name: "others compact the store", servers: 1, rounds: []round{
		{how: stalled, away: func(t *testing.T, b *testbed) { // the server remembers
			b.write(t, task{60, 9})
			b.compactOutside(t)
			b.write(t, task{30, 3})
		}},
		{how: hung, gone: true, away: func(t *testing.T, b *testbed) {
			b.write(t, task{60, 9})
			b.compactOutside(t)
			b.restart(t, syscall.SIGKILL)
			b.write(t, task{30, 3})
		}},
		{how: hung, away: func(t *testing.T, b *testbed) { // behind the gap all is as it was
			b.write(t, task{60, 9})
			b.compact(t)
			b.restart(t, syscall.SIGTERM)
		}},
	}},
	{name: "ten deletions are remembered", servers: 1, settings: settings{Tombstones: 10}, rounds: []round{
		{how: hung, away: func(t *testing.T, b *testbed) {
			b.write(t, task{60, 9})
			b.compact(t)
			b.restart(t, syscall.SIGKILL)
		}},
		{how: hung, gone: true, away: func(t *testing.T, b *testbed) {
			b.write(t, task{60, 30})
			b.compact(t)
			b.restart(t, syscall.SIGKILL)
		}},
	}},
	{name: "sixteen kilobytes of deletions are remembered", servers: 1, settings: settings{TombstoneBytes: 16 << 10}, rounds: []round{
		{how: hung, away: func(t *testing.T, b *testbed) {
			b.write(t, task{60, 9})
			b.compact(t)
			b.restart(t, syscall.SIGKILL)
		}},
		{how: hung, gone: true, away: func(t *testing.T, b *testbed) {
			b.write(t, task{60, 60})
			b.compact(t)
			b.restart(t, syscall.SIGTERM)
		}},
	}},
	{name: "coalesced history is turned off", servers: 1, settings: settings{ExactHistory: true}, rounds: []round{
		{how: refused, away: func(t *testing.T, b *testbed) {
			b.meanwhile(t, task{60, 9}, func() { b.restart(t, syscall.SIGKILL) })
		}},
		{how: hung, gone: true, away: func(t *testing.T, b *testbed) {
			b.write(t, task{60, 9})
			b.compact(t)
			b.restart(t, syscall.SIGKILL)
		}},
	}},
	{name: "three servers are restarted one by one", servers: 3, rounds: []round{
		{how: open, away: func(t *testing.T, b *testbed) {
			b.meanwhile(t, task{150, 21}, func() { b.roll(t) })
		}},
		{how: hung, away: func(t *testing.T, b *testbed) {
			b.write(t, task{60, 12})
			b.compact(t)
			b.meanwhile(t, task{60, 9}, func() { b.roll(t) })
		}},
	}},
	{name: "servers remember differently", servers: 3, rounds: []round{
		{how: hung, rough: true, away: func(t *testing.T, b *testbed) {
			b.write(t, task{120, 18})
			b.compact(t)
			b.hosts[b.random.IntN(3)].restart(t, syscall.SIGKILL) // the others have seen it all
			b.write(t, task{30, 3})
		}},
		{how: hung, rough: true, away: func(t *testing.T, b *testbed) {
			b.write(t, task{90, 12})
			b.compact(t)
			b.restart(t, syscall.SIGKILL)
			b.write(t, task{30, 3})
		}},
	}},
	{name: "three members of etcd are killed and stopped", servers: 3, members: 3, exact: true, rounds: []round{
		{how: open, away: func(t *testing.T, b *testbed) {
			b.meanwhile(t, task{150, 21}, func() { b.failMembers(t) })
		}},
		{how: hung, away: func(t *testing.T, b *testbed) {
			b.meanwhile(t, task{60, 9}, func() { b.failMost(t); b.roll(t) })
		}},
	}},
	{name: "members are killed, and the store is compacted", servers: 3, members: 3, rounds: []round{
		{how: hung, away: func(t *testing.T, b *testbed) {
			b.write(t, task{90, 12})
			b.compact(t)
			b.meanwhile(t, task{60, 9}, func() { b.failMembers(t) })
		}},
		{how: hung, away: func(t *testing.T, b *testbed) {
			b.meanwhile(t, task{60, 9}, func() { b.failMost(t) })
			b.compact(t)
			b.meanwhile(t, task{60, 9}, func() { b.roll(t) })
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
	b := newTestbed(t, seed, s)
	for i, r := range s.rounds {
		if r.how != open && !asWritten {
			r.how = []silence{refused, hung, stalled}[b.random.IntN(3)]
		}
		if r.gone && r.how == stalled {
			r.how = hung // what was on its way would still come
		}
		b.begin(t)
		b.silence(r.how)
		r.away(t, b)
		b.heal()
		if r.rough {
			b.cutAnywhere()
		}
		b.judge(t, r)
		if t.Failed() {
			t.Fatalf("in round %d; %v", i, b)
		}
	}
	// And they go on.
	b.begin(t)
	b.write(t, task{30, 6})
	b.judge(t, round{})
	if s.exact {
		b.judgeExactly(t)
	}
	t.Log(b)
}
