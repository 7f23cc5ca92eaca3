package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// outage is a time in which probes have no answer that counts. But for unauthorized, only the
// goroutine that probes uses it.
type outage struct {
	since        time.Time   // when the first such probe was sent; zero: the last one was answered
	logged       time.Time   // when that was logged last; zero: not yet
	unauthorized atomic.Bool // the last answer was 401
}

// logOutageEvery is how often an outage is logged that goes on.
const logOutageEvery = time.Minute

// errUnauthorized is the reason of an outage in which the upstream answers, but nothing that the
// relay asks. Levelwire says 401, too, when it cannot check a token because its own upstream is away.
var errUnauthorized = errors.New("the upstream answers 401: it does not accept the relay's credentials, or cannot check them")

// checkProbe returns why an answer to a probe does not count, or nil. Other refusals do: the
// upstream is there, and may allow what the relay needs more than its version.
func checkProbe(code int) error {
	switch {
	case code == http.StatusUnauthorized:
		return errUnauthorized
	case code >= http.StatusInternalServerError:
		return fmt.Errorf("the upstream answers %d %s", code, http.StatusText(code))
	}
	return nil
}

// noteProbeFailed notes that a probe had no answer that counts. A single one is not worth a word,
// unless the upstream has never answered: then the kubeconfig may be wrong.
func (r *Relay) noteProbeFailed(ctx context.Context, sent time.Time, why error) {
	o, now := &r.outage, r.contact.now()
	o.unauthorized.Store(errors.Is(why, errUnauthorized))
	if o.since.IsZero() {
		o.since = sent
	}
	lasting := r.contact.last.Load() == 0 || now.Sub(o.since) >= verifyFrom
	if ctx.Err() != nil || !lasting || !o.logged.IsZero() && now.Sub(o.logged) < logOutageEvery {
		return
	}
	o.logged = now
	r.opts.Logger.Warn("the upstream does not answer the relay", "upstream", r.Upstream(), "for", now.Sub(o.since).Round(time.Second), "error", why)
}

// noteProbeAnswered notes that a probe was answered.
func (r *Relay) noteProbeAnswered() {
	o := &r.outage
	o.unauthorized.Store(false)
	if !o.logged.IsZero() && r.contact.last.Load() != 0 {
		r.opts.Logger.Info("the upstream answers the relay again", "upstream", r.Upstream(), "after", r.contact.now().Sub(o.since).Round(time.Second))
	}
	o.since, o.logged = time.Time{}, time.Time{}
}
