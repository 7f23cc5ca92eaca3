package client

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// Observer receives reports of the requests of a Client, for metrics: client-go's
// rest_client_requests_total, _request_retries_total, _rate_limiter_duration_seconds
// and _request_size_bytes are of attempts, _request_duration_seconds and
// _response_size_bytes of requests.
type Observer interface {
	// AttemptDone is called when the header of an answer has arrived, or when an
	// attempt failed without one. A request has several attempts if it is repeated.
	AttemptDone(AttemptInfo)
	// RequestDone is called when an answer has been read to its end, when a
	// watch has ended, or when a request failed.
	RequestDone(RequestInfo)
}

// AttemptInfo describes one HTTP request and the header of its answer.
type AttemptInfo struct {
	Verb     string // as in RequestInfo
	Method   string // GET, POST, ...
	Host     string // of the server, with its port if it has one
	Resource schema.GroupVersionResource
	Number   int   // 1 for the first attempt of a request
	Code     int   // HTTP status; 0 if there was no answer
	Err      error // why there was no answer
	Duration time.Duration
	// Lookup is the part of Duration in which the address of the server's host, or of its proxy,
	// was looked up. It is 0 for an attempt that has used a connection that was there.
	Lookup time.Duration
	// LimiterWait is for how long Options.RateLimiter held the attempt up. It is not
	// part of Duration.
	LimiterWait time.Duration
	Sent        int64 // bytes of the body
}

// RequestInfo describes one finished request.
type RequestInfo struct {
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection, difference, discover, raw, ...
	Method      string // GET, POST, ...
	Host        string // of the server, with its port if it has one
	Resource    schema.GroupVersionResource
	Code        int           // HTTP status of the last attempt; 0 if there was no answer
	Duration    time.Duration // with all attempts and the waiting between them
	LimiterWait time.Duration // the part of Duration that Options.RateLimiter took
	Sent        int64         // bytes of the body, of all attempts
	Received    int64         // bytes of the answers' bodies, after decompression
	Attempts    int           // 1 if nothing was repeated
}

// Stats counts what a Client did since it was made.
type Stats struct {
	Requests      int64 // finished or running, repeats included
	Retries       int64
	ActiveWatches int64
	BytesSent     int64
	BytesReceived int64

	// RetryWait is for how long requests waited because the server asked for that,
	// LimiterWait for how long because of Options.RateLimiter, all added up.
	RetryWait, LimiterWait time.Duration

	// ProtobufRefused is for which resources the client uses JSON at present,
	// because the server refuses protobuf.
	ProtobufRefused []schema.GroupVersionResource

	// CredentialReloads counts how often rotated certificates or CAs were put to use
	// on new connections; tokens are not among them. CredentialReloadErrors counts
	// attempts to read them that failed.
	CredentialReloads, CredentialReloadErrors int64

	// Panics counts calls of Options.Observer, Options.RateLimiter, Options.Dial, the round trippers of
	// Options.WrapTransport, and rest.Config's functions of the same kind and handlers of warnings, that
	// panicked. A request whose rate limiter, Dial or round tripper panics fails; others go on.
	Panics int64
}

// counters are the Client's own, always on: a few atomic adds for a request.
type counters struct {
	requests, retries, watches, sent, received atomic.Int64
	retryWait, limiterWait                     atomic.Int64 // nanoseconds
	panics                                     contain.Counter
}

func (c *counters) stats() Stats {
	return Stats{
		Requests:      c.requests.Load(),
		Retries:       c.retries.Load(),
		ActiveWatches: c.watches.Load(),
		BytesSent:     c.sent.Load(),
		BytesReceived: c.received.Load(),
		RetryWait:     time.Duration(c.retryWait.Load()),
		LimiterWait:   time.Duration(c.limiterWait.Load()),
		Panics:        c.panics.Count(),
	}
}
