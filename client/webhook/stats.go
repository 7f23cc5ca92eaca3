package webhook

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Stats is how one webhook of a Server stands and what it did so far.
type Stats struct {
	Path     string
	InFlight int // reviews that run; those that wait for their turn are not counted

	// Succeeded are the reviews that were answered, denials and refused
	// conversions included. Rejected could not be read, or there was no room for
	// them: HTTP codes 400 to 499, and 503. Failed panicked or ran out of time:
	// other codes from 500.
	Succeeded, Rejected, Failed uint64
	Panics                      uint64 // of Failed, those whose handler panicked

	// Took is the total time of the reviews, and TookWithin counts them by how
	// long they took; see BucketBounds. A bucket does not hold what is in those
	// before it.
	Took       time.Duration
	TookWithin [Buckets]uint64
}

// Buckets is how many buckets Stats.TookWithin has.
const Buckets = 11

// BucketBounds are the upper bounds, inclusive, of all buckets but the last,
// which has none.
func BucketBounds() [Buckets - 1]time.Duration {
	const ms = time.Millisecond
	return [...]time.Duration{ms, 2500 * time.Microsecond, 5 * ms, 10 * ms, 25 * ms, 100 * ms, 500 * ms,
		2500 * ms, 10 * time.Second, 30 * time.Second}
}

var bucketBounds = BucketBounds()

// counters are those of one path.
type counters struct {
	inFlight                    atomic.Int64
	succeeded, rejected, failed atomic.Uint64
	panics                      atomic.Uint64
	took                        atomic.Int64
	within                      [Buckets]atomic.Uint64
}

// finished counts a review that was answered with an HTTP code.
func (c *counters) finished(code int, took time.Duration) {
	switch {
	case code < http.StatusBadRequest:
		c.succeeded.Add(1)
	case code < http.StatusInternalServerError || code == http.StatusServiceUnavailable:
		c.rejected.Add(1)
	default:
		c.failed.Add(1)
	}
	n := 0
	for n < len(bucketBounds) && took > bucketBounds[n] {
		n++
	}
	c.within[n].Add(1)
	c.took.Add(int64(took))
}

// Stats returns the counters and gauges of this moment, by path.
func (s *Server) Stats() []Stats {
	all := make([]Stats, 0, len(s.counters))
	for path, c := range s.counters {
		of := Stats{Path: path, InFlight: int(c.inFlight.Load()), Succeeded: c.succeeded.Load(), Rejected: c.rejected.Load(), Failed: c.failed.Load(), Panics: c.panics.Load(), Took: time.Duration(c.took.Load())}
		for n := range of.TookWithin {
			of.TookWithin[n] = c.within[n].Load()
		}
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b Stats) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// codeRecorder remembers the HTTP code of an answer.
type codeRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (r *codeRecorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController and http.MaxBytesReader.
func (r *codeRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// status returns the code, which is 200 if none was written.
func (r *codeRecorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}
