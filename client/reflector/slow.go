package reflector

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/client/internal/transfer"
)

// errUnfinished is a cause as errSilent is, after a part of an event, a page or a difference
// has come: it arrives too slowly, or no more of it comes.
var errUnfinished = errors.New("a part of the answer came, and the rest did not in time")

// slowest is for how many limits the bytes of one answer that is not a stream are waited
// for. What comes drop by drop must end, too.
const slowest = 4

// limited returns the context of a request that lists. It ends when nothing has come for
// Options.ListTimeout, and bytes count for that only for slowest times as long. The function
// releases what it holds.
func (r *Reflector[T]) limited(ctx context.Context) (context.Context, func()) {
	ctx, received, cancel := withTransfer(ctx)
	until := time.Now().Add(min(r.opts.ListTimeout, forEver/slowest) * slowest)
	dog := newWatchdog(r.opts.ListTimeout,
		func() (int64, bool) { return received.Bytes(), time.Now().Before(until) },
		func() {
			if received.Bytes() > 0 {
				cancel(errUnfinished)
			} else {
				cancel(errSilent)
			}
		})
	dog.begin()
	return ctx, func() {
		dog.stop()
		cancel(nil)
	}
}

func withTransfer(ctx context.Context) (context.Context, *transfer.Transfer, context.CancelCauseFunc) {
	received := new(transfer.Transfer)
	ctx, cancel := context.WithCancelCause(transfer.With(ctx, received))
	return ctx, received, cancel
}

// watchStream starts the watchdog of a stream in which whole events show life, and until
// a moment the bytes of an event, too. White space between events shows none: something else
// than the server may send it. silent is the cause of an end that comes between events.
func watchStream(limit time.Duration, received *transfer.Transfer, until time.Time, silent error, cancel context.CancelCauseFunc) *watchdog {
	return newWatchdog(limit,
		func() (int64, bool) {
			_, partial := received.PartialSince()
			return received.Bytes(), partial && time.Now().Before(until)
		},
		func() {
			if _, partial := received.PartialSince(); partial {
				silent = errUnfinished
			}
			cancel(silent)
		})
}
