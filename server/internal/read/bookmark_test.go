package read

import (
	"testing"
	"time"
)

func TestBookmarkSchedule(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		deadline time.Duration
		jitter   float64
		want     []time.Duration
	}{
		"no deadline":    {0, 0.5, []time.Duration{60 * time.Second, 120 * time.Second, 180 * time.Second}},
		"early jitter":   {0, 0, []time.Duration{45 * time.Second, 90 * time.Second}},
		"late jitter":    {0, 0.999999999999, []time.Duration{75 * time.Second, 150 * time.Second}},
		"before the end": {100 * time.Second, 0.5, []time.Duration{60 * time.Second, 98 * time.Second, 158 * time.Second}},
		"short watch":    {10 * time.Second, 0.5, []time.Duration{8 * time.Second, 68 * time.Second}},
		"shorter still":  {time.Second, 0.5, []time.Duration{-time.Second, 59 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			var deadline time.Time
			if test.deadline != 0 {
				deadline = start.Add(test.deadline)
			}
			b := newBookmarkSchedule(start, deadline, test.jitter)
			for i, want := range test.want {
				at := b.next()
				if got := at.Sub(start).Round(time.Millisecond); got != want {
					t.Fatalf("bookmark %d is due after %v, want %v", i, got, want)
				}
				if b.due(at.Add(-1)) || !b.due(at) {
					t.Fatalf("bookmark %d is not due exactly when it is", i)
				}
				b.sent(at)
			}
		})
	}
}
