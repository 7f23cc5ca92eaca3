package reflector

import (
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/client"
)

// verdict says what follows the end of a stream.
type verdict struct {
	relist  ListCause    // not "": a list is needed
	reason  ResumeReason // otherwise: why the watch is opened again
	quietly bool         // at once, and nothing went wrong
	after   time.Duration
}

// tooShort is how long a stream must last for its end to need no back-off.
const tooShort = time.Second

// judge decides what follows err. A list is needed only if the server says that
// it cannot continue from the resourceVersion; everything else resumes. s is
// nil if the stream was not opened.
func (r *Reflector[T]) judge(s *session[T], err error) verdict {
	undecodable := r.undecodable
	r.undecodable = nil
	var status *apierrors.StatusError
	var decode *client.DecodeError
	var rewound *rewoundError
	lasting := s != nil && time.Since(s.opened) >= tooShort
	switch {
	case errors.As(err, &status) && tooLarge(status):
		return r.judgeUnknown(status)
	case errors.As(err, &status):
		return judgeStatus(status)
	case errors.As(err, &decode):
		r.counts.decodeError()
		version := r.LastSyncResourceVersion()
		if undecodable != nil && *undecodable == version {
			return verdict{relist: ListDecode}
		}
		r.undecodable = &version
		return verdict{reason: ResumeDecode}
	case errors.As(err, &rewound):
		return verdict{relist: ListRewound}
	case errors.Is(err, errOlder):
		return verdict{relist: ListRepeated}
	case errors.Is(err, errSilent):
		return verdict{reason: ResumeSilent, quietly: lasting}
	case unreachable(err):
		return verdict{reason: ResumeRefused}
	case errors.Is(err, io.EOF) && s != nil && s.events == 0 && !lasting:
		return verdict{reason: ResumeShort}
	case errors.Is(err, io.EOF):
		return verdict{reason: ResumeEnded, quietly: lasting}
	default:
		return verdict{reason: ResumeCut, quietly: lasting}
	}
}

// judgeUnknown is judge for a server that answers that the resourceVersion does
// not exist yet. One of several servers may merely be behind the others, and
// reach it soon. If the answer repeats, the resourceVersion is not of this
// store: the store was restored from a backup, say. The watch would then miss
// all differences until the store's resourceVersions come so far again.
func (r *Reflector[T]) judgeUnknown(err *apierrors.StatusError) verdict {
	v := judgeStatus(err)
	if r.unknown++; r.unknown >= maxFailures {
		return verdict{relist: ListRewound, after: v.after}
	}
	return v
}

// judgeStatus is judge for a Status of the server, as an answer or within the
// stream.
func judgeStatus(err *apierrors.StatusError) verdict {
	var v verdict
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		v.after = time.Duration(seconds) * time.Second
	} else if d := err.Status().Details; d != nil {
		v.after = time.Duration(d.RetryAfterSeconds) * time.Second
	}
	switch code := err.Status().Code; {
	case expired(err):
		v.relist = ListExpired
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity:
		v.relist = ListRejected
	case code == http.StatusTooManyRequests:
		v.reason = ResumeBusy
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
