package request

import (
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Info is what one HTTP request asks of one resource.
type Info struct {
	Verb        string
	Resource    *resource.Resource
	Namespace   string // "" for all namespaces and for cluster-scoped kinds
	Name        string // "" for the collection
	Subresource string // "status", "scale", "binding", ...
	Rest        string // the path after the subresource, without a leading slash
	Query       url.Values
	User        auth.User
	// Authorized is what the user was allowed.
	Authorized auth.Attributes
	// Visible limits the request to what the user may see; nil does not.
	Visible read.Visibility
}

// Scope returns which objects a read is about.
func (q *Info) Scope() read.Scope {
	return read.Scope{Resource: q.Resource, Namespace: q.Namespace, Name: q.Name, Visible: q.Visible}
}

// Resolve looks up the resource of a path and derives the verb from the method and
// the query. Its errors are a 400, a 404 or a 405. lookup returns nil for a
// resource that is not served.
func Resolve(r *http.Request, t Path, lookup func(group, version, plural string) *resource.Resource) (*Info, error) {
	res := lookup(t.Group, t.Version, t.Plural)
	if res == nil {
		return nil, status.NoSuchPath()
	}
	if t.Namespaced && !res.Namespaced || !t.Namespaced && res.Namespaced && t.Name != "" || t.Watch && !Offers(res, VerbWatch) {
		return nil, status.NoSuchPath()
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, status.BadRequest("the query string cannot be parsed: %v", err)
	}
	q := &Info{
		Resource: res, Namespace: t.Namespace, Name: t.Name,
		Subresource: t.Subresource, Rest: t.Rest, Query: query,
	}
	if q.Verb = VerbOf(r.Method, t, query); q.Verb == "" {
		return nil, status.MethodNotSupported(res, r.Method)
	}
	collective := q.Verb == VerbCreate || q.Verb == VerbDeleteCollection
	if collective && q.Subresource == "" && res.Namespaced && !t.Namespaced {
		if res.Stored().Mixed { // kube-apiserver has no such path for custom resources
			return nil, status.NoSuchPath()
		}
		return nil, status.MethodNotSupported(res, q.Verb)
	}
	if q.Subresource == "" && !Offers(res, q.Verb) {
		return nil, notOffered(res, q.Verb)
	}
	return q, nil
}

// notOffered refuses a verb that a resource does not offer. Kubernetes takes a watch of one that can be
// listed for a list at first, and names it therefore.
func notOffered(res *resource.Resource, verb string) error {
	if verb == VerbWatch && Offers(res, VerbList) {
		return apierrors.NewMethodNotSupported(res.GroupResource(), verb)
	}
	return status.MethodNotSupported(res, verb)
}

// IsTrue reads a boolean query parameter as Kubernetes does: if it is there,
// anything but "0" and "false" is true, even nothing.
func IsTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && !strings.EqualFold(value, "false")
}
