package client

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// lookup is for how long an attempt has waited for the address of a host. A connection may be made by another
// goroutine, which may outlive the attempt.
type lookup struct{ begun, took atomic.Int64 } // nanoseconds since processBegun

var processBegun = time.Now()

// trace returns a context whose requests note in l the lookups for their connections, beside what the program's own
// trace is told.
func (l *lookup) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { l.begun.Store(int64(time.Since(processBegun))) },
		DNSDone: func(httptrace.DNSDoneInfo) {
			l.took.Add(max(1, int64(time.Since(processBegun))-l.begun.Load()))
		},
	})
}

// duration is 0 if there was no lookup.
func (l *lookup) duration() time.Duration { return time.Duration(l.took.Load()) }
