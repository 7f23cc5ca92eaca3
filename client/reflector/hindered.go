package reflector

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onlyLists reports whether lists have to stand for the watch although nothing says that there is none. Something
// before the server may hold watches back, or end them (502 to 504, or no answer), and a server may have the
// resource for lists only (404, 406), while lists succeed. A server that is away looks the same, and must not be
// asked by all its clients for everything when it is back. So once each request for a watch has failed for a
// minute, the server is asked for a list of one object: if it answers that, it is not away. s is the stream that has
// ended, and err why.
func (r *Reflector[T]) onlyLists(ctx context.Context, s *session[T], err error, v verdict) bool {
	if !r.synced || unset(r.LastSyncResourceVersion()) || v.relist != "" || r.openedFor(s, err) != nil || !mayBeTheWatch(err) {
		return false
	}
	const watched = true // it lasts a minute in any case: so long may a server take that starts
	if !r.hindered.again(watched) {
		return false
	}
	// A server that hangs must not be waited for twice as long each time.
	ctx, cancel := context.WithTimeoutCause(ctx, min(r.opts.OpenTimeout, r.opts.ListTimeout), errUnopened)
	defer cancel()
	if _, err = r.source.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		r.hindered = watchRefusals{} // it is asked again after another minute
	}
	return err == nil
}

// mayBeTheWatch reports whether an error of a request for a watch may be one of watches only. Without a connection
// there is nothing, and a server that asks for fewer requests gets no others.
func mayBeTheWatch(err error) bool {
	return !hasCode(err, http.StatusTooManyRequests) && (!unreachable(err) || errors.Is(err, errUnopened))
}
