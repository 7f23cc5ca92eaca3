// Package watchstream writes the events of open watches to their clients: the last
// hop of an event. It queues nothing for a client. A Stream is a cursor in the
// cache's log (read.Watch), an encoder, and the connection; a slow client lags at
// its own expense.
//
// Two goroutines may serve a stream, one at a time, and the stream's ownership
// says which. The request's goroutine opens it, writes what it begins with, and
// then sleeps. On a connection of package h2 it returns instead of that: the stream is
// detached, no goroutine belongs to it while it is idle, and whatever would wake the
// request's goroutine starts a new one in its place (detached.go). When there are events, the cache wakes the stream, and the
// scheduler of its connection drains it together with all other streams of the
// connection that are awake: an event often wakes every watch of a connection,
// and to wake a goroutine for each costs several times what it costs to send the
// event. What needs blocking would hold up the other streams, so it is handed off
// to the request's own goroutine: a closed flow-control window, the initial
// state, coalesced history, a conversion webhook, an error, the end.
//
//	               Wake: tryAcquire            its turn
//	┌──────────┐               ┌───────────┐               ┌──────────────────┐
//	│   IDLE   │──────────────▶│  QUEUED   │──────────────▶│     DRAINING     │
//	│ nothing  │               │ with the  │◀──────────────│ read the cursor, │
//	│ to send  │               │ scheduler │  more ready   │ encode, TryWrite │
//	└──────────┘               └───────────┘               └──────────────────┘
//	  ▲  ▲  │                                                   │        │
//	  │  │  │               release, no wake-up since           │        │ needs blocking:
//	  │  └──┼───────────────────────────────────────────────────┘        │ handoff
//	  │     │                                                            ▼
//	  │     │ Wake without a scheduler: handoff        ┌────────────────────────┐
//	  │     │ timer, end, shutdown: acquire            │ OWNED BY THE REQUEST'S │
//	  │     └─────────────────────────────────────────▶│ GOROUTINE: read,       │◀── opened
//	  └────────────────────────────────────────────────│ encode, write, flush;  │
//	                release, no wake-up since          │ bookmarks; may block   │
//	                                                   └────────────────────────┘
//	                                                        │ deadline, shutdown, error,
//	                                                        ▼ or the client has gone
//	                                                     CLOSED
//
// When the scheduler has drained all that were queued, it pushes once: what was
// collected for the connection goes out in one write.
//
// A wake-up that comes while a stream is owned does not queue it a second time: it
// marks the ownership, release fails, and the owner looks at the cursor again. So
// no wake-up is lost. While the request's goroutine waits for the ownership, the
// next release or handoff gives it to that goroutine and to no other.
//
// Locks: the cache's writer calls Wake, so a wake-up neither blocks nor calls the
// cache. It takes at most the mutex of one scheduler, and no other lock is taken
// under the mutexes of this package.
package watchstream
