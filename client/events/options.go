package events

import (
	"log/slog"
	"time"
)

// Options configures a Recorder. The defaults of its limits are about those of client-go.
type Options struct {
	// Host is the machine on which the component runs, for one that runs on many, such as
	// a kubelet. Default: none.
	Host string
	// Burst is how many events of one type, Normal or Warning, about one object are
	// accepted at once; later ones as RefillInterval allows. What comes faster is dropped
	// and counted as Stats.Throttled, and the first drop of an object is logged.
	// Default: 25. Negative: no limit.
	Burst int
	// RefillInterval is the time after which an object that has used up its Burst may
	// have one more event. Default: 5 minutes.
	RefillInterval time.Duration
	// CombineAfter is how many different messages an object may have with one type and
	// reason. Further messages become one Event with a count, whose message is the newest
	// one after "(combined from similar events): ". Default: 10. Negative: nothing is combined.
	CombineAfter int
	// CombineWindow is how long similar events must pause before their messages count
	// from zero again. Default: 10 minutes.
	CombineWindow time.Duration
	// Logger receives what cannot be written. Default: slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Burst == 0 {
		o.Burst = 25
	}
	if o.RefillInterval <= 0 {
		o.RefillInterval = 5 * time.Minute
	}
	if o.CombineAfter == 0 {
		o.CombineAfter = 10
	}
	if o.CombineWindow <= 0 {
		o.CombineWindow = 10 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
