package apiserver

import (
	"context"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// verbDifference is how metrics name these requests; authorization asks for
// verbList.
const verbDifference = "difference"

// differenceForm is what the objects of a difference can be encoded as.
var differenceForm = forms{media: []media{mediaJSON, mediaProtobuf}, shapes: true, list: true}

// serveDifference answers a client that says what it holds of a collection with
// what is otherwise (docs/users/difference.md). path is that of the collection.
func (s *Server) serveDifference(w http.ResponseWriter, r *http.Request, path string) {
	q, err := s.resolveDifference(r, path)
	if err == nil {
		if info := infoFrom(r.Context()); info != nil {
			info.request = q
		}
		err = s.difference(w, r, q)
	}
	if err != nil {
		writeError(w, r, err)
	}
}

// resolveDifference finds the collection, as a list of it would, and makes sure
// that the user may list it.
func (s *Server) resolveDifference(r *http.Request, path string) (*request, error) {
	t, ok := parsePath(path)
	if !ok || t.watch || t.name != "" {
		return nil, status.NoSuchPath()
	}
	list := *r
	list.Method = http.MethodGet
	q, err := s.resolve(&list, t)
	if apierrors.IsNotFound(err) {
		// A 404 says that nobody knows what a difference is.
		return nil, listInstead("the server does not have this collection")
	}
	if err != nil {
		return nil, err
	}
	q.user, _ = userFrom(r.Context())
	q.verb = verbList // even if the query asks for a watch, which has no meaning here
	if !offers(q.resource, verbList) {
		return nil, status.MethodNotSupported(q.resource, verbList)
	}
	if err := s.authorize(r, q); err != nil {
		return nil, err
	}
	q.verb = verbDifference
	if r.Method != http.MethodPost {
		return nil, status.MethodNotSupported(q.resource, r.Method)
	}
	return q, nil
}

// difference reads the digest, compares, and writes the answer.
func (s *Server) difference(w http.ResponseWriter, r *http.Request, q *request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != difference.MediaType {
		return status.Failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "a digest has the media type "+difference.MediaType)
	}
	form, err := negotiate(r, offerFor(differenceForm, q.resource))
	if err != nil {
		return err
	}
	if form.as == asTable {
		return status.NotAcceptable(differenceForm.describe())
	}
	form.pretty = false
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	digest, err := difference.ParseDigest(body)
	if err != nil {
		return status.BadRequest("the digest: %v", err)
	}
	objects, revision, err := s.compared(r.Context(), q)
	if err != nil {
		return err
	}
	c := comparison{digest: digest, objects: objects}
	if err := c.compare(r.Context()); err != nil {
		return err
	}
	if c.listIsBetter() {
		s.metrics.difference.listInstead.Inc()
		return listInstead(fmt.Sprintf("%d of %d objects would have to be sent", c.header.Sent, c.header.Selected))
	}
	c.header.Version = uint64(revision)
	presenter := s.presenter(q.resource, form)
	if err := presenter.prepare(r.Context(), c.sent()); err != nil {
		return err
	}
	answer := newAnswer(w, r, mime.FormatMediaType(difference.MediaType, map[string]string{"items": form.contentType()}))
	err = c.write(r.Context(), answer, presenter)
	if err == nil {
		err = answer.finish()
	}
	if err == nil {
		s.metrics.difference.answered(&c.header)
	}
	return answer.release(err)
}

// listInstead is the answer to whom a list will tell more, or the same for less.
func listInstead(why string) error {
	return status.Failure(http.StatusConflict, difference.ReasonListInstead, why+": list instead")
}

// compared returns the objects that the digest is compared with: those of a
// snapshot that is as new as a list with this query would be.
func (s *Server) compared(ctx context.Context, q *request) (iter.Seq[*watchcache.Object], storage.Revision, error) {
	o, err := parseListOptions(q)
	if err == nil {
		err = o.validateList()
	}
	if err != nil {
		return nil, 0, err
	}
	if o.limit != 0 || o.token != "" || o.match == metav1.ResourceVersionMatchExact {
		return nil, 0, status.BadRequest("a difference is of everything and of the present: limit, continue and resourceVersionMatch=Exact are not possible")
	}
	selection, err := o.selection(q)
	if err != nil {
		return nil, 0, err
	}
	cache, err := s.cacheOf(q.resource)
	if err != nil {
		return nil, 0, err
	}
	at, err := s.placeOfList(ctx, cache, &o)
	if err != nil {
		return nil, 0, err
	}
	return at.snapshot.Select(selection, keyPrefix(q)), at.snapshot.Revision(), nil
}

// differencePath returns the path of the collection that a difference is
// wanted of.
func differencePath(path string) (collection string, ok bool) {
	collection, ok = strings.CutPrefix(path, difference.Path)
	return collection, ok && strings.HasPrefix(collection, "/")
}
