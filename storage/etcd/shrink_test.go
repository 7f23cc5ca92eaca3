package etcd

import (
	"testing"
	"time"
)

// TestShrinkingPays looks at databases over time: only what has been free all the time is
// given back, and only if that is quick.
func TestShrinkingPays(t *testing.T) {
	const mib = 1 << 20
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type look struct {
		after       time.Duration
		size, inUse int64
		due         bool
	}
	for name, looks := range map[string][]look{
		"free all the time": {{0, 300 * mib, 20 * mib, false}, {shrinkAfter / 2, 300 * mib, 30 * mib, false}, {shrinkAfter, 300 * mib, 20 * mib, true}, {shrinkAfter + 1, 30 * mib, 20 * mib, false}},
		"used in between":   {{0, 300 * mib, 20 * mib, false}, {shrinkAfter / 2, 300 * mib, 250 * mib, false}, {shrinkAfter, 300 * mib, 20 * mib, false}, {2 * shrinkAfter, 300 * mib, 20 * mib, true}},
		"little":            {{0, 70 * mib, 20 * mib, false}, {2 * shrinkAfter, 70 * mib, 20 * mib, false}},
		"much is in use":    {{0, 1000 * mib, 100 * mib, false}, {2 * shrinkAfter, 1000 * mib, 100 * mib, false}},
		"a small part":      {{0, 120 * mib, 62 * mib, false}, {2 * shrinkAfter, 120 * mib, 62 * mib, false}},
	} {
		var s shrinking
		for _, l := range looks {
			if got := s.due(begin.Add(l.after), l.size, l.inUse); got != l.due {
				t.Errorf("%s: after %v it is due: %v, want %v", name, l.after, got, l.due)
			}
		}
	}
}
