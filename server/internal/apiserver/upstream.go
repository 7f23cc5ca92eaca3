package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/apiserver/profiling"
	"github.com/levelwire/levelwire/server/internal/apiserver/proxy"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// Upstream is the server that a relay is in front of. Its methods are called
// concurrently.
type Upstream interface {
	proxy.Server
	// MayAnswer reports whether the relay may have the answer to a read. It does not
	// block.
	MayAnswer(r *http.Request, path request.Path, verb string) bool
	// Prepare returns the resource of an authorized read when its cache has been filled. It
	// fails with ErrNotCached if the request has to be passed on, and otherwise with an
	// error for the client. done must be called once, when the request has ended.
	Prepare(ctx context.Context, r *http.Request, path request.Path, verb string) (res *resource.Resource, done func(), err error)
	// MayDescribe reports whether the relay may have what a request asks for: a document
	// about the upstream's API, as discovery and OpenAPI are. It does not block.
	MayDescribe(r *http.Request) bool
	// Describe answers such a request, which has been authorized. It fails with ErrNotCached
	// if the request has to be passed on, and otherwise with an error for the client.
	Describe(w http.ResponseWriter, r *http.Request) error
	// Declare adds headers to the answer of a read from a cache, which names a version or
	// none: how old it may be, whether every change since the version is known, and what the
	// upstream warns of.
	Declare(w http.ResponseWriter, res *resource.Resource, version string)
}

// ErrNotCached reports that a relay's cache cannot answer a request. A handler that
// fails with it has not written anything, and the request is passed on.
var ErrNotCached = errors.New("the relay does not have the answer")

// ErrNoProgress is ErrNotCached of a resource of which the upstream does not say how far its changes have come. The answer says so, to
// relays.
var ErrNoProgress = fmt.Errorf("%w: the upstream does not say how far it is", ErrNotCached)

// passOnKey is the key of a context whose request may be passed on at any time.
type passOnKey struct{}

// MayPassOn reports whether a request may be passed on when its cache is read: it is not a
// watch, whose answer has begun by then.
func MayPassOn(ctx context.Context) bool { return ctx.Value(passOnKey{}) != nil }

// beginningKey is the key of the context of a watch, whose value is a *storage.Revision.
type beginningKey struct{}

// SetBeginning notes the version at which a watch of the most recent state begins: what the upstream has named when it was asked. ctx is
// that of Upstream.Prepare.
func SetBeginning(ctx context.Context, at storage.Revision) {
	if noted, ok := ctx.Value(beginningKey{}).(*storage.Revision); ok {
		*noted = at
	}
}

// Beginning returns the version that SetBeginning has noted for the request of ctx; 0: none. The upstream is not to be asked
// again: it may have come further meanwhile than the cache can be known to have.
func Beginning(ctx context.Context) storage.Revision {
	if noted, ok := ctx.Value(beginningKey{}).(*storage.Revision); ok {
		return *noted
	}
	return 0
}

// mayAnswer reports whether a relay may answer a request itself.
func (s *Server) mayAnswer(t *target, r *http.Request) bool {
	if t.onObjects {
		return s.config.Upstream.MayAnswer(r, t.path, t.attributes.Verb)
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	return s.config.Upstream.MayDescribe(r) || path == "/metrics" || health.IsPath(path) || strings.HasPrefix(path, profiling.Path)
}

// serveUpstream passes on a request that a relay cannot answer. The upstream authorizes it.
func (s *Server) serveUpstream(w http.ResponseWriter, r *http.Request, t *target) {
	if s.open != nil && t.onObjects && t.isLong(r) {
		if err := s.refusesLong(r, t); err != nil {
			writeDenied(w, r, err)
			return
		}
	}
	s.forward(w, r, t)
}

// refusesLong returns the error for a client whose request need not end and is known not to be allowed. Such
// a request is about to join those that end when a right is withdrawn. Of those that need the same rights, the first one alone is
// asked about there, and a no would end the others on their way to the upstream. What cannot be found out is
// left to the upstream.
func (s *Server) refusesLong(r *http.Request, t *target) error {
	done, err := s.undecided(t.attributes.User)
	if err != nil {
		return err
	}
	defer done()
	reason, err := s.authorizer.AuthorizeRequest(r.Context(), t.attributes)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil
	}
	auditDecision(request.RecordFrom(r.Context()), err == nil, reason)
	return err
}

// serveCached answers a read from a relay's cache, or else passes it on. Requests that
// are passed on are authorized by the upstream.
func (s *Server) serveCached(w http.ResponseWriter, r *http.Request, t *target) {
	if err := s.authorizeTarget(r, t); err != nil {
		writeDenied(w, r, err)
		return
	}
	switch t.attributes.Verb {
	case request.VerbList:
		r = r.WithContext(context.WithValue(r.Context(), passOnKey{}, true))
	case request.VerbWatch:
		r = r.WithContext(context.WithValue(r.Context(), beginningKey{}, new(storage.Revision)))
	}
	res, done, err := s.prepareCached(r, t)
	if err == nil {
		request.RecordFrom(r.Context()).AtEnd(done)
		err = s.readCached(w, r, t, res)
	}
	switch {
	case errors.Is(err, ErrNotCached):
		// What the upstream answers is not as old as the cache.
		w.Header().Del("Age")
		w.Header().Del("Warning")
		w.Header().Del(watchstream.HistoryHeader)
		if errors.Is(err, ErrNoProgress) {
			w.Header().Set(watchstream.ProgressHeader, watchstream.NoProgress)
		}
		t.server = s.config.Upstream
		s.forward(w, r, t)
	case err != nil:
		encoding.WriteError(w, r, err)
	}
}

// maxPreparing bounds the watches that wait for a relay's cache, to be filled or to reach their
// version: so many come at once when another relay is lost.
const maxPreparing = 20_000

// prepareCached gets a relay's cache ready for a read. Watches hold no slot meanwhile, so those
// that wait are bounded by themselves, each user's by a share.
func (s *Server) prepareCached(r *http.Request, t *target) (*resource.Resource, func(), error) {
	if t.isLong(r) {
		user := t.attributes.User
		if !s.preparing.TryAcquire(user, 1) {
			s.metrics.Rejected.Inc()
			return nil, nil, status.TooManyRequests("too many watches, of this user or of all, wait until the relay has what they begin with", 1)
		}
		defer s.preparing.Release(user, 1)
	}
	return s.config.Upstream.Prepare(r.Context(), r, t.path, t.attributes.Verb)
}

// serveDescription answers a request for a document about the upstream's API, or else passes
// it on.
func (s *Server) serveDescription(w http.ResponseWriter, r *http.Request, t *target) {
	if err := s.authorize(r, t.attributes); err != nil {
		writeDenied(w, r, err)
		return
	}
	switch err := s.config.Upstream.Describe(w, r); {
	case errors.Is(err, ErrNotCached):
		t.server = s.config.Upstream
		s.forward(w, r, t)
	case err != nil:
		encoding.WriteError(w, r, err)
	}
}

// readCached calls the handler of a read.
func (s *Server) readCached(w http.ResponseWriter, r *http.Request, t *target, res *resource.Resource) error {
	q, err := request.Resolve(r, t.path, func(string, string, string) *resource.Resource { return res })
	switch {
	case apierrors.IsNotFound(err):
		return ErrNotCached // a path of another scope: the upstream says in its own words that there is none
	case err != nil:
		return err
	}
	q.User, q.Authorized = t.attributes.User, t.attributes
	request.RecordFrom(r.Context()).Info = q
	s.config.Upstream.Declare(w, q.Resource, q.Query.Get("resourceVersion"))
	err = s.handlerOf(q)(w, r, q)
	if q.Verb == request.VerbGet && apierrors.IsNotFound(err) {
		return ErrNotCached // it may have been made a moment ago
	}
	return err
}
