package load

import (
	"math/bits"
	"time"
)

const (
	// Each power of two has this many buckets, so that a quantile is right
	// within 3 %.
	perOctave = 32
	octaves   = 36 // of microseconds: the last one is beyond every deadline
)

// Histogram counts durations. The zero value is empty. It is not safe for
// concurrent use.
type Histogram struct {
	Count   int64
	Max     time.Duration
	Buckets [octaves * perOctave]int32
}

// Add counts d once. Negative ones count as zero.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.Count++
	h.Max = max(h.Max, d)
	h.Buckets[bucketOf(uint64(d/time.Microsecond))]++
}

// bucketOf: the first perOctave buckets hold one microsecond each, and each
// further octave is cut into as many.
func bucketOf(us uint64) int {
	if us < perOctave {
		return int(us)
	}
	shift := bits.Len64(us) - bits.Len(perOctave)
	return min((shift+1)*perOctave+int(us>>shift)-perOctave, octaves*perOctave-1)
}

// middleOf is the inverse of bucketOf: the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < perOctave {
		return time.Duration(bucket) * time.Microsecond
	}
	shift := bucket/perOctave - 1
	low := int64(perOctave+bucket%perOctave) << shift
	return time.Duration(1000 * (low + 1<<shift/2))
}

// Merge adds all that o has counted.
func (h *Histogram) Merge(o *Histogram) {
	h.Count += o.Count
	h.Max = max(h.Max, o.Max)
	for i, n := range o.Buckets {
		h.Buckets[i] += n
	}
}

// Quantile is the duration that the share q of all counted did not exceed; 0
// for an empty one.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := int64(q * float64(h.Count))
	for i, n := range h.Buckets {
		if rank -= int64(n); rank < 0 {
			return min(middleOf(i), h.Max)
		}
	}
	return h.Max
}
