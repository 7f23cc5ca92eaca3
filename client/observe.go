package client

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Observer receives a report of each request of a Client, for metrics.
type Observer interface {
	// RequestDone is called when an answer has been read to its end, when a
	// watch has ended, or when a request failed.
	RequestDone(RequestInfo)
}

// RequestInfo describes one finished request.
type RequestInfo struct {
	Verb     string // get, list, watch, create, update, patch, delete, deletecollection, difference
	Resource schema.GroupVersionResource
	Code     int // HTTP status; 0 if there was no answer
	Duration time.Duration
	Sent     int64 // bytes of the request's body
	Received int64 // bytes of the answer's body, after decompression
	Attempts int   // 1 if nothing was repeated
}

// Stats counts what a Client did since it was made.
type Stats struct {
	Requests      int64 // finished or running, repeats included
	Retries       int64
	ActiveWatches int64
	BytesSent     int64
	BytesReceived int64
}

// counters are the Client's own, always on: a few atomic adds for a request.
type counters struct {
	requests, retries, watches, sent, received atomic.Int64
}

func (c *counters) stats() Stats {
	return Stats{
		Requests:      c.requests.Load(),
		Retries:       c.retries.Load(),
		ActiveWatches: c.watches.Load(),
		BytesSent:     c.sent.Load(),
		BytesReceived: c.received.Load(),
	}
}
