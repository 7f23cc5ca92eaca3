package metrics

import (
	"testing"

	"github.com/levelwire/levelwire/client/events"
)

func TestEvents(t *testing.T) {
	values := gather(t, Events("greeter", func() events.Stats {
		return events.Stats{Queued: 1, Written: 2, Combined: 3, Throttled: 10, QueueFull: 20, UnknownKind: 30, Failed: 40}
	}))
	for name, want := range map[string]float64{
		"levelwire_events_queue_length":   1,
		"levelwire_events_written_total":  2,
		"levelwire_events_combined_total": 3,
		"levelwire_events_dropped_total":  100,
	} {
		if values[name] != want {
			t.Errorf("%s is %v, want %v", name, values[name], want)
		}
	}
}
