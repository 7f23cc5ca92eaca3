package reflector

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// verdict says what follows the end of a stream.
type verdict struct {
	relist  ListCause    // not "": a list is needed
	reason  ResumeReason // otherwise: why the watch is opened again
	quietly bool         // at once, and nothing went wrong
	early   bool         // quietly, but after a moment: the server has ended a steady stream before its time
	// cutAfter, unless zero, is how long the stream had lasted that was cut, or
	// ended before it was steady.
	cutAfter time.Duration
	after    time.Duration // at least, says the server: see Reflector.retryAfter
	// unread: the server has something after the version that could not be read.
	unread bool
	// anyState: the list need not be of the most recent state, one that is not older than
	// the version will do.
	anyState bool
}

// tooShort is how long a stream must last for its end to need no back-off.
const tooShort = time.Second

// causeRightWithdrawn is the cause in the Status with which a Levelwire server ends a watch
// whose right was withdrawn.
const causeRightWithdrawn metav1.CauseType = "RightWithdrawn"

// judge decides what follows err. A list is needed only if the server says that
// it cannot continue from the resourceVersion; everything else resumes. s is
// nil if the stream was not opened.
func (r *Reflector[T]) judge(s *session[T], err error) verdict {
	var status *apierrors.StatusError
	var rewound *rewoundError
	var lasted time.Duration // 0 if it was too short to be any use
	if s != nil && time.Since(s.opened) >= tooShort {
		lasted = time.Since(s.opened)
	}
	s = r.openedFor(s, err)
	if s != nil && time.Since(s.opened) >= steady { // the version can be watched
		r.ends.at(r.LastSyncResourceVersion()).futile = 0
	}
	unwatched := r.unwatched(s, err)
	if s != nil && !unwatched {
		// By a stream that was ended for want of a right, too: that right may come back.
		r.watched, r.refused, r.hindered = true, watchRefusals{}, watchRefusals{}
	}
	switch {
	case unwatched:
		return verdict{relist: ListUnwatched, anyState: true}
	case errors.As(err, &status) && tooLarge(status):
		return r.judgeUnknown(status)
	case errors.As(err, &status):
		v := judgeStatus(status, client.IsStatus(err))
		switch {
		case v.relist != "":
		case v.reason == ResumeServer && status.Status().Code == 0: // as an answer it would have the code of HTTP
			return r.judgeUndecodable()
		case s == nil && !r.refusesVersion(err, status):
		case r.isFutile(s) && (v.reason != ResumeBusy || r.ends.lasted() >= cutsLast):
			v.reason, v.relist, v.unread, v.anyState = "", ListStuck, true, s == nil
		}
		return v
	case undecodable(err):
		return r.judgeUndecodable()
	case errors.As(err, &rewound):
		return verdict{relist: ListRewound}
	case errors.Is(err, errOlder):
		return verdict{relist: ListRepeated}
	case errors.Is(err, errUnfinished) && s != nil:
		return r.judgeUnfinished(lasted)
	case errors.Is(err, errSilent), errors.Is(err, errUnfinished):
		return verdict{reason: ResumeSilent, cutAfter: lasted}
	case unreachable(err):
		return verdict{reason: ResumeRefused}
	case s != nil && lasted == 0 && r.isFutile(s) && (errors.Is(err, io.EOF) || r.ends.lasted() >= cutsLast):
		return verdict{relist: ListStuck}
	case errors.Is(err, io.EOF) && s != nil && s.events == 0 && lasted == 0:
		return verdict{reason: ResumeShort}
	case errors.Is(err, io.EOF):
		inTime := lasted > 0 && lasted >= s.asked*9/10
		v := verdict{reason: ResumeEnded, quietly: inTime, early: !inTime && lasted >= steady}
		if !v.quietly && !v.early {
			v.cutAfter = lasted // a server that ends each watch at once must not be asked in a loop
		}
		return v
	default:
		return verdict{reason: ResumeCut, cutAfter: lasted}
	}
}

// openedFor returns the stream in which an error came. It is nil for the refusal of a poll, as
// for that of a stream; the polls before it were a watch.
func (r *Reflector[T]) openedFor(s *session[T], err error) *session[T] {
	var unanswered *unansweredPoll
	var status *apierrors.StatusError
	if !errors.As(err, &unanswered) || !errors.As(err, &status) {
		return s
	}
	if s.events > 0 || time.Since(s.opened) >= r.opts.PollTimeout {
		r.watched, r.refused, r.hindered = true, watchRefusals{}, watchRefusals{}
	}
	return nil
}

// endings counts the ends of streams after which no version was reached, in total: ends
// of different kinds may alternate.
type endings struct {
	version     string
	undecodable int       // because of what comes after the version: it cannot be read, or not in time
	futile      int       // ends that may be because of it
	since       time.Time // of the first of these
}

// lasted is for how long streams have been futile.
func (e *endings) lasted() time.Duration { return time.Since(e.since) }

// at returns the counts for a version.
func (e *endings) at(version string) *endings {
	if e.version != version {
		*e = endings{version: version}
	}
	return e
}

// undecodable reports whether an error is about the bytes that a server has sent, so
// that the same request may fail in the same way for ever.
func undecodable(err error) bool {
	var decode *client.DecodeError
	return errors.As(err, &decode) || errors.Is(err, client.ErrFrameTooLarge)
}

// judgeUndecodable is judge for an event, or a list, that cannot be understood. A Status
// within a stream that has no code is one. The second time, the server will not send
// anything else after this version.
func (r *Reflector[T]) judgeUndecodable() verdict {
	r.counts.decodeError()
	ends := r.ends.at(r.LastSyncResourceVersion())
	if ends.undecodable++; ends.undecodable >= 2 {
		return verdict{relist: ListDecode, unread: true, anyState: true}
	}
	return verdict{reason: ResumeDecode}
}

// judgeUnfinished is judge for an event that does not arrive as a whole in the time of a
// watch, nor would in that of the next one. A list may lack it, or the server compresses that.
func (r *Reflector[T]) judgeUnfinished(lasted time.Duration) verdict {
	ends := r.ends.at(r.LastSyncResourceVersion())
	if ends.undecodable++; ends.undecodable >= 2 {
		return verdict{relist: ListStuck, unread: true, anyState: true}
	}
	return verdict{reason: ResumeSilent, cutAfter: lasted}
}

// maxFutile is how often a stream may fail at once at one version, before a list is
// asked for: with the default back-off it takes about a quarter of a minute.
const maxFutile = 5

// cutsLast is for how long, besides, streams must fail that break off: each time that a server or a
// proxy is replaced many do, and that has nothing to do with what they would bring. So it is for
// those that a busy server ends, and for watches that are refused after one was open.
const cutsLast = time.Minute

// refusesVersion reports whether an error that answers a request for a watch may be because
// of the version: an error within the server. Those of a server that is overloaded, or
// starts or stops, are others (429, 502 to 504), and a proxy's page says nothing.
func (r *Reflector[T]) refusesVersion(err error, status *apierrors.StatusError) bool {
	return r.synced && client.IsStatus(err) && status.Status().Code == http.StatusInternalServerError
}

// isFutile counts a stream that has failed without reaching another version; nil: the
// server has not opened it. It reports whether that was so too often to try it again. A
// steady stream shows that the version can be watched.
func (r *Reflector[T]) isFutile(s *session[T]) bool {
	version := r.LastSyncResourceVersion()
	if s != nil && s.from != version {
		return false
	}
	ends := r.ends.at(version)
	if ends.futile == 0 {
		ends.since = time.Now()
	}
	if ends.futile++; s != nil && time.Since(s.opened) >= steady {
		ends.futile = 0
	}
	return ends.futile >= maxFutile
}

// unwatched reports whether the server has refused a watch, and has opened none
// since the last list. Listing by the back-off is then the only way to see changes.
// If the server has opened one before, the reflector asks for the watch again, for a minute. A
// stream that says at once that the watch is not allowed counts as refused. A later one means that
// the right was withdrawn while the watch was open: the reflector resumes when it is granted
// again, if that is soon.
func (r *Reflector[T]) unwatched(s *session[T], err error) bool {
	if !r.synced || !noWatch(err) {
		return false
	}
	if s != nil {
		atOnce := s.events == 0 && time.Since(s.opened) < tooShort && !apierrors.HasStatusCause(err, causeRightWithdrawn)
		return !r.watched && atOnce && notAllowed(err)
	}
	return r.refused.again(r.watched) || !r.watched && client.IsStatus(err)
}

// watchRefusals counts, since a watch was open, answers to requests for one that say that there is none.
type watchRefusals struct {
	count int
	since time.Time // of the first
}

// again counts one more. It reports whether that was so too often for an accident. If a watch
// was open, a right may have been withdrawn for a moment, or a proxy stands in for the server.
func (c *watchRefusals) again(watched bool) bool {
	if c.count == 0 {
		c.since = time.Now()
	}
	c.count++
	return c.count >= maxFutile && (!watched || time.Since(c.since) >= cutsLast)
}

// noWatch reports whether an answer says that there is no watch, whoever has sent it: it is
// not allowed or not known, or the answer is a page.
func noWatch(err error) bool {
	var other *client.UnexpectedResponseError
	return hasCode(err, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented) ||
		errors.As(err, &other) && other.Code < http.StatusMultipleChoices
}

// notAllowed reports whether the server has sent that it does not allow a request,
// or does not know what it is.
func notAllowed(err error) bool {
	return client.IsStatus(err) && hasCode(err, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented)
}

func hasCode(err error, codes ...int32) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && slices.Contains(codes, status.Status().Code)
}

// judgeUnknown is judge for a server that answers that the resourceVersion does
// not exist yet. One of several servers may merely be behind the others, and
// reach it soon. If the answer repeats, the resourceVersion is not of this
// store: the store was restored from a backup, say. The watch would then miss
// all differences until the store's resourceVersions come so far again.
func (r *Reflector[T]) judgeUnknown(err *apierrors.StatusError) verdict {
	v := judgeStatus(err, true)
	if r.unknown++; r.unknown >= maxFailures {
		return verdict{relist: ListRewound, after: v.after}
	}
	return v
}

// judgeStatus is judge for a Status of the server, as an answer or within the
// stream. If it was not sent but derived from the page of a proxy, it says
// nothing about the resourceVersion.
func judgeStatus(err *apierrors.StatusError, sent bool) verdict {
	var v verdict
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		v.after = time.Duration(seconds) * time.Second
	} else if d := err.Status().Details; d != nil {
		v.after = time.Duration(d.RetryAfterSeconds) * time.Second
	}
	switch code := err.Status().Code; {
	case expired(err):
		v.relist = ListExpired
	case sent && (code == http.StatusBadRequest || code == http.StatusUnprocessableEntity):
		v.relist = ListRejected
	case code == http.StatusTooManyRequests:
		v.reason = ResumeBusy
	case apierrors.IsNotFound(err):
		v.reason = ResumeNotServed
	case code >= 400 && code < 500:
		v.reason = ResumeDenied
	default:
		v.reason = ResumeServer
	}
	return v
}

// unreachable reports whether there was no connection to send the request on.
func unreachable(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errUnopened)
}
