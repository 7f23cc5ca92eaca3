package etcd

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPatienceGrows: a member that confirms a watch and then says nothing may be one of
// many that need long for the history after the start, so that each next one gets more
// time. Events make it short again.
func TestPatienceGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silence
		leaves := func() time.Duration {
			s.opened()
			s.answered(true)
			s.waits = time.Now()
			for due := s.waits; !s.leave(due); {
				time.Sleep(time.Second)
			}
			return time.Since(s.waits)
		}
		for _, want := range []time.Duration{2, 4, 8, 16, 16} {
			if got := leaves(); got != want*time.Second {
				t.Errorf("left after %v, want %ds", got, want)
			}
		}
		s.answered(false)
		if got := leaves(); got != watchPatience {
			t.Errorf("after an event: left after %v", got)
		}
	})
}
