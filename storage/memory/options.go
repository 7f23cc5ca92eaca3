package memory

import "errors"

// Defaults of Options.
const (
	DefaultHistoryEvents = 100_000
	DefaultHistoryBytes  = 256 << 20
)

// Options bounds the history that a store keeps. When a bound is exceeded the
// oldest history is compacted away, as if Compact had been called: a stream
// that has fallen behind it ends with storage.ErrCompacted.
type Options struct {
	// HistoryEvents is about how many events are kept. 0 means
	// DefaultHistoryEvents. History is dropped in segments of segmentSize
	// events, so that many more may remain.
	HistoryEvents int
	// HistoryBytes is about how many bytes of keys and values the kept events
	// may refer to, counting those that are current state too. 0 means
	// DefaultHistoryBytes.
	HistoryBytes int64
}

// EnsureDefaults returns the options with defaults in place of zeros.
func (o Options) EnsureDefaults() Options {
	if o.HistoryEvents == 0 {
		o.HistoryEvents = DefaultHistoryEvents
	}
	if o.HistoryBytes == 0 {
		o.HistoryBytes = DefaultHistoryBytes
	}
	return o
}

// Validate reports options that cannot be kept.
func (o Options) Validate() error {
	if o.HistoryEvents < 0 || o.HistoryBytes < 0 {
		return errors.New("memory: HistoryEvents and HistoryBytes must not be negative")
	}
	return nil
}
