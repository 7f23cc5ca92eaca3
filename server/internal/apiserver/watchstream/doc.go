// Package watchstream writes the events of open watches to their clients: the last
// hop of an event. It queues nothing for a client. A Stream is a cursor in the
// cache's log (read.Watch), an encoder, and the connection; a slow client lags at
// its own expense.
//
// Two goroutines may serve a stream, one at a time, and the stream's ownership
// says which. The request's goroutine opens it, writes what it begins with, and
// then sleeps. When there are events, the cache wakes the stream, and the
// scheduler of its connection drains it together with all other streams of the
// connection that are awake: an event often wakes every watch of a connection,
// and to wake a goroutine for each costs several times what it costs to send the
// event. What needs blocking would hold up the other streams, so it is handed off
// to the request's own goroutine: a closed flow-control window, the initial
// state, coalesced history, a conversion webhook, an error, the end.
//
//	                     release, no wake-up since
//	      ┌──────────────────────────────────────────────────┐
//	      ▼                                                  │
//	┌───────────┐ Wake: acquire ┌───────────┐ its turn ┌───────────┐ more ready
//	│   IDLE    │──────────────▶│  QUEUED   │─────────▶│ DRAINING  │──────┐
//	│ asleep in │               │ with the  │          │ read, encode,    │
//	│ the cache │               │ scheduler │◀─────────│ TryWrite; │◀─────┘
//	└───────────┘               └───────────┘ requeue  │ then Push │
//	   │     ▲                        │                └───────────┘
//	   │     │                        │ no scheduler         │ needs blocking
//	   │     │ release,               ▼ (HTTP/1.1)           ▼
//	   │     │ nothing new      ┌──────────────────────────────────┐
//	   │     └──────────────────│ OWNED BY THE REQUEST'S GOROUTINE │◀── opened
//	   └───────────────────────▶│ read, encode, write, flush; may  │
//	     timer, end, shutdown:  │ block; bookmarks, errors         │
//	     the goroutine acquires └──────────────────────────────────┘
//	                                          │ deadline, error, client gone,
//	                                          ▼ shutdown (a last bookmark)
//	                                        CLOSED
//
// A wake-up that comes while a stream is owned does not queue it a second time: it
// marks the ownership, release fails, and the owner looks at the cursor again. So
// no wake-up is lost. While the request's goroutine waits for the ownership, the
// next release or handoff gives it to that goroutine and to no other.
//
// Locks: a wake-up is delivered with no lock of the cache held, takes at most the
// mutex of one scheduler, and never blocks. No other lock is taken under the
// mutexes of this package.
package watchstream
