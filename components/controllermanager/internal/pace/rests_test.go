package pace

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRests: long work on a key is followed by a rest in proportion, short work by none, and
// other keys go on.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rests[string]
		r.Worked("small", shortWork-1)
		r.Worked("large", 10*time.Millisecond)
		r.Worked("huge", time.Minute)
		want := func(when string, small, large, huge time.Duration) {
			t.Helper()
			if s, l, h := r.Left("small"), r.Left("large"), r.Left("huge"); s != small || l != large || h != huge {
				t.Errorf("%s: %v, %v and %v are left, want %v, %v and %v", when, s, l, h, small, large, huge)
			}
		}
		want("at once", 0, 90*time.Millisecond, longestRest)
		time.Sleep(60 * time.Millisecond)
		want("later", 0, 30*time.Millisecond, longestRest-60*time.Millisecond)
		r.Forget("huge")
		time.Sleep(30 * time.Millisecond)
		want("at the end", 0, 0, 0)
		if len(r.until) != 0 {
			t.Errorf("%d keys are kept", len(r.until))
		}
	})
}
