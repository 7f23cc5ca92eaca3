package reflector

import (
	"time"

	"github.com/levelwire/levelwire/client"
)

const (
	// outageWarning is for how long attempts must fail, each for a reason that passes by
	// itself, before a warning says so.
	outageWarning = time.Minute
	// outageReminder is how long after a warning the next one comes.
	outageReminder = 10 * time.Minute
	// outageGrows is how long an outage must have lasted for the time between attempts to have
	// grown by much.
	outageGrows = 2 * time.Second
)

// outage is a series of attempts that failed. It belongs to the goroutine of Run.
type outage struct {
	since  time.Time // of the first; zero: the last attempt succeeded
	warned time.Time // when a warning was logged; zero: never
	// unreached: the server itself has not answered the last attempt, or has not let it in.
	unreached bool
	lost      bool // failed has said so of this outage
}

// failed notes a failure at now. It reports whether it is the first after an outage that the
// server answers, and that it answers with the loss of the version: a server that holds its
// state in memory has started anew, say. It does so once until an attempt succeeds: a server whose
// answers alternate between the two is not asked more often than another one.
func (o *outage) failed(now time.Time, err error, v verdict) (lost bool) {
	if o.since.IsZero() {
		o.since = now
	}
	lost = !o.lost && o.unreached && now.Sub(o.since) >= outageGrows &&
		client.IsStatus(err) && (v.relist == ListExpired || v.relist == ListRejected || tooLarge(err))
	o.lost = o.lost || lost
	switch v.reason {
	case ResumeRefused, ResumeCut, ResumeSilent, ResumeServer, ResumeBusy:
		o.unreached = !tooLarge(err)
	default:
		o.unreached = false
	}
	return lost
}

// warns reports whether it is time for a warning, and notes that it was logged.
func (o *outage) warns(now time.Time) bool {
	if now.Sub(o.since) < outageWarning || !o.warned.IsZero() && now.Sub(o.warned) < outageReminder {
		return false
	}
	o.warned = now
	return true
}
