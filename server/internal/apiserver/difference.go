package apiserver

import (
	"context"
	"encoding/binary"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// verbDifference is how metrics name these requests; authorization asks for
// verbList.
const verbDifference = "difference"

// differenceForm is what the objects of a difference can be encoded as.
var differenceForm = forms{media: []media{mediaJSON, mediaProtobuf}, shapes: true, list: true}

// serveDifference answers a client that says what it holds of a collection with
// what is otherwise (docs/difference.md). path is that of the collection.
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
		// A 404 would say that the server does not know what a difference is.
		return nil, read.ListInstead("the server does not have this collection")
	}
	if err != nil {
		return nil, err
	}
	q.user, _ = userFrom(r.Context())
	q.verb = verbList // even if the query asks for a watch, which has no meaning here
	if !offers(q.resource, verbList) {
		return nil, status.MethodNotSupported(q.resource, verbList)
	}
	if err := s.authorizer.Authorize(r.Context(), attributesOf(r, q)); err != nil {
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
	opts, err := listOptions(q.query)
	if err != nil {
		return err
	}
	d, err := s.reader.Difference(r.Context(), q.scope(), &opts, digest)
	if err != nil {
		if apierrors.ReasonForError(err) == difference.ReasonListInstead {
			s.metrics.difference.listInstead.Inc()
		}
		return err
	}
	presenter := s.presenter(q.resource, form)
	if err := presenter.prepare(r.Context(), d.Sent()); err != nil {
		return err
	}
	answer := newAnswer(w, r, mime.FormatMediaType(difference.MediaType, map[string]string{"items": form.contentType()}))
	err = writeDifference(r.Context(), answer, presenter, d)
	if err == nil {
		err = answer.finish()
	}
	if err == nil {
		s.metrics.difference.answered(&d.Header)
	}
	return answer.release(err)
}

// writeDifference writes the answer.
func writeDifference(ctx context.Context, a *answer, p presenter, d *read.Difference) error {
	if _, err := a.Write(d.Header.Append(nil, d.Bits())); err != nil {
		return err
	}
	var buf [binary.MaxVarintLen64]byte
	if d.Header.Unchanged > 0 {
		for hash := range d.Unchanged() {
			if _, err := a.Write(difference.AppendHash(buf[:0], hash)); err != nil {
				return err
			}
		}
	}
	if d.Header.Sent > 0 {
		item := p.differenceItem(ctx)
		for o := range d.Sent() {
			encoded, err := item(o)
			if err != nil {
				return err
			}
			if _, err := a.Write(difference.AppendSize(buf[:0], len(encoded))); err != nil {
				return err
			}
			if _, err := a.Write(encoded); err != nil {
				return err
			}
		}
	}
	_, err := a.Write(difference.AppendEnd(nil))
	return err
}

// differenceItem returns the function that encodes an object as it stands in a
// difference: a whole document in JSON, a bare message in protobuf. What it
// returns is valid until the next call.
func (p presenter) differenceItem(ctx context.Context) func(*watchcache.Object) ([]byte, error) {
	switch {
	case p.form.media == mediaProtobuf:
		return p.bareMessages(ctx)
	case p.form.as == asMetadata:
		return func(o *watchcache.Object) ([]byte, error) { return p.metadata(ctx, o, false) }
	}
	return func(o *watchcache.Object) ([]byte, error) { return p.json(ctx, o) }
}

// differencePath returns the path of the collection that a difference is
// wanted of.
func differencePath(path string) (collection string, ok bool) {
	collection, ok = strings.CutPrefix(path, difference.Path)
	return collection, ok && strings.HasPrefix(collection, "/")
}
