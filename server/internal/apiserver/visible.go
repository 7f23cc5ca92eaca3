package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/filteredlist"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/status"
)

// asksForVisible reports whether a request asks for what its user may see, and may do so: a
// list, a watch or a difference of all namespaces. Otherwise the parameter is ignored, as
// servers do that do not know it.
func (s *Server) asksForVisible(q *request.Info) bool {
	return s.config.Visible != nil && q.Query.Has(filteredlist.Parameter) &&
		(q.Verb == request.VerbList || q.Verb == request.VerbWatch) &&
		q.Resource.Namespaced && q.Namespace == "" && q.Name == "" && q.Subresource == "" &&
		!q.User.In(auth.Unauthenticated)
}

// authorizeVisible authorizes a request that asks for what its user may see: every user may
// do that. denied is what the user would be answered without the parameter, nil if that
// would be allowed. It sets q.Scope's Visible, unless the user may see everything by other
// means than roles and bindings. The caller calls close after the request.
func (s *Server) authorizeVisible(w http.ResponseWriter, r *http.Request, q *request.Info, denied error) (close func(), err error) {
	if denied != nil && !apierrors.IsForbidden(denied) {
		return nil, denied
	}
	value := q.Query.Get(filteredlist.Parameter)
	if value != filteredlist.True && value != filteredlist.Watch {
		return nil, status.BadRequest("%s=%q is not possible: it is %q, or %q for a list that a watch goes on from",
			filteredlist.Parameter, value, filteredlist.True, filteredlist.Watch)
	}
	opts, err := request.ListOptions(q.Query)
	if err != nil {
		return nil, err
	}
	from, err := read.OldestRevision(&opts)
	if err != nil {
		return nil, err
	}
	view, err := s.config.Visible.View(r.Context(), q.User, q.Resource.Group, q.Resource.Plural, visibleVerbs(value, q.Verb), from)
	if err != nil {
		return nil, read.CacheError(err)
	}
	if denied == nil && !view.Now().All() {
		other, err := s.allowedByOthers(r, q)
		if err != nil || other {
			view.Close()
		}
		if err != nil {
			return nil, read.CacheError(err)
		}
		if other {
			w.Header().Set(filteredlist.Header, filteredlist.All)
			return func() {}, nil
		}
	}
	w.Header().Set(filteredlist.Header, userToken(&q.User))
	auditDecision(request.RecordFrom(r.Context()), true, "limited to the namespaces that the user may see")
	q.Visible = view
	return view.Close, nil
}

// visibleVerbs are the verbs that a user must be allowed in a namespace to see it by a request.
func visibleVerbs(parameter, verb string) []string {
	if parameter == filteredlist.Watch || verb == request.VerbWatch {
		return []string{request.VerbList, request.VerbWatch}
	}
	return []string{request.VerbList}
}

// allowedByOthers reports whether a request that was allowed is allowed by another authorizer
// than roles and bindings, whose history is not known. It is not if they allow it: a user may list
// in all namespaces, and watch in some. Nor if it was allowed by them when it was decided, and is
// not any more.
func (s *Server) allowedByOthers(r *http.Request, q *request.Info) (bool, error) {
	byRBAC, err := s.config.Visible.AllowsEverywhere(r.Context(), q.User, q.Resource.Group, q.Resource.Plural, q.Verb)
	return !byRBAC && err == nil && s.authorize(r, q.Authorized) == nil, err
}

// userToken stands for a user and its groups, which bindings can refer to. It is the same on
// all servers.
func userToken(user *auth.User) string {
	groups := slices.Clone(user.Groups)
	slices.Sort(groups)
	h := sha256.New()
	for _, part := range append([]string{user.Name}, slices.Compact(groups)...) {
		_, _ = h.Write(append([]byte(part), 0)) // it never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
