// Package testwait waits in tests for what other goroutines do, in the two ways that miss nothing:
//
//   - [Stable] asks again and again for a stable property: one that stays true once it is true.
//   - [Events] matches the history of what happened, which a [History] has collected since before
//     the test did what it waits for. A state that comes and goes is in it, however late the test
//     looks.
//
// There is no third way. A phase, a condition or the number of pods that is asked for now and then
// may be as wanted between two looks, and is then never seen; and what is read once after a wait may
// have changed since. Both functions return what they have judged: a test asserts on that, and does
// not read it again.
//
// Both give up after [Limit] with what they have seen last. In a bubble of synctest that is time of
// the bubble.
package testwait

import (
	"testing"
	"time"
)

// Limit is how long a test waits before it fails. It costs nothing while tests pass, is not reached
// because the machine has much else to do, and is less than package testwatchdog allows.
const Limit = 3 * time.Minute

// The pauses between two looks: most states are there at once, and some take seconds.
const (
	minPause = time.Millisecond
	maxPause = 20 * time.Millisecond
)

// Stable waits for a stable property, which stays true once it is true: that something has begun or
// ended, that a counter that only grows has reached a number, that a status says of the latest
// generation what it will say from then on. What may pass is for [Events].
//
// look returns what it sees, which a failure reports, and whether the property holds. Stable returns
// what look saw when it did. It calls look in the goroutine of the test, at least once.
func Stable[T any](t testing.TB, what string, look func() (seen T, holds bool)) T {
	t.Helper()
	begun := time.Now()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		seen, holds := look()
		if holds {
			return seen
		}
		if waited := time.Since(begun); waited > Limit {
			t.Fatalf("waited %v in vain: %s; last seen: %+v", waited.Round(time.Second), what, seen)
		}
		time.Sleep(pause)
	}
}
