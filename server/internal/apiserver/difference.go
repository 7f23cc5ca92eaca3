package apiserver

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/handlers"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/status"
)

// verbDifference is how metrics name these requests; authorization asks for
// request.VerbList.
const verbDifference = "difference"

// serveDifference answers a client that sends a digest of what it holds of a
// collection with what it lacks (docs/users/difference.md). path is the collection's.
func (s *Server) serveDifference(w http.ResponseWriter, r *http.Request, path string) {
	q, close, err := s.resolveDifference(w, r, path)
	if close != nil {
		defer close()
	}
	if err == nil {
		request.RecordFrom(r.Context()).Info = q
		err = s.verbs.Difference(w, r, q)
	}
	if err != nil {
		encoding.WriteError(w, r, err)
	}
}

// resolveDifference finds the collection, as a list of it would, and makes sure
// that the user may list it. If close is not nil, the caller calls it after the request.
func (s *Server) resolveDifference(w http.ResponseWriter, r *http.Request, path string) (q *request.Info, close func(), err error) {
	t, ok := request.ParsePath(path)
	if !ok || t.Watch || t.Name != "" {
		return nil, close, status.NoSuchPath()
	}
	list := *r
	list.Method = http.MethodGet
	user := request.RecordFrom(r.Context()).User
	attributes := t.Attributes(&list, user)
	attributes.Verb = request.VerbList // even if the query asks for a watch, which has no meaning here
	denied := s.authorize(r, attributes)
	q, err = s.resolve(&list, t)
	if err == nil {
		q.User, q.Authorized, q.Verb = user, attributes, request.VerbList
		if s.asksForVisible(q) {
			close, denied = s.authorizeVisible(w, r, q, denied)
		}
	}
	if denied != nil {
		return nil, nil, denied
	}
	if apierrors.IsNotFound(err) {
		// A 404 would say that the server does not know what a difference is.
		return nil, close, read.ListInstead("the server does not have this collection")
	}
	if err != nil {
		return nil, close, err
	}
	if !request.Offers(q.Resource, request.VerbList) {
		return nil, close, status.MethodNotSupported(q.Resource, request.VerbList)
	}
	if handlers.IsUnstored(q.Resource) {
		return nil, close, read.ListInstead("the objects of this collection are not kept")
	}
	q.Verb = verbDifference
	if r.Method != http.MethodPost {
		return nil, close, status.MethodNotSupported(q.Resource, r.Method)
	}
	return q, close, nil
}

// differencePath returns the path of the collection that a difference is
// wanted of.
func differencePath(path string) (collection string, ok bool) {
	collection, ok = strings.CutPrefix(path, difference.Path)
	return collection, ok && strings.HasPrefix(collection, "/")
}
