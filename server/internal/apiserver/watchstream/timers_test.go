package watchstream

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestTimers sets, moves and removes the times of many streams: each is signalled once, at
// its last time and not before, whatever the others do.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 500
		var timers timers
		random := rand.New(rand.NewPCG(1, 2))
		begun := time.Now()
		due := map[*Stream]time.Duration{}
		all := make([]*Stream, streams) // which their test owns: a signal leaves a mark
		for i := range all {
			all[i] = new(Stream)
		}
		for range 4 * streams {
			stream := all[random.IntN(streams)]
			if random.IntN(4) == 0 {
				timers.remove(stream)
				delete(due, stream)
				continue
			}
			due[stream] = time.Duration(1+random.IntN(100)) * time.Second
			timers.set(stream, begun.Add(due[stream]))
		}
		for second := 1; second <= 100; second++ {
			time.Sleep(time.Until(begun.Add(time.Duration(second) * time.Second)))
			synctest.Wait()
			for _, stream := range all {
				want := due[stream] == time.Duration(second)*time.Second
				if got := stream.signals.Swap(0) == signalDue; got != want {
					t.Fatalf("after %d s: signalled %v, want %v", second, got, want)
				}
			}
		}
		if len(timers.heap) != 0 {
			t.Errorf("%d streams are left", len(timers.heap))
		}
	})
}
