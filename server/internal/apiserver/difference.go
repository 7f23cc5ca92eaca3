package apiserver

import (
	"context"
	"encoding/binary"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
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
	q, err := s.resolveDifference(r, path)
	if err == nil {
		request.RecordFrom(r.Context()).Info = q
		err = s.difference(w, r, q)
	}
	if err != nil {
		encoding.WriteError(w, r, err)
	}
}

// resolveDifference finds the collection, as a list of it would, and makes sure
// that the user may list it.
func (s *Server) resolveDifference(r *http.Request, path string) (*request.Info, error) {
	t, ok := request.ParsePath(path)
	if !ok || t.Watch || t.Name != "" {
		return nil, status.NoSuchPath()
	}
	list := *r
	list.Method = http.MethodGet
	q, err := request.Resolve(&list, t, s.lookup)
	if apierrors.IsNotFound(err) {
		// A 404 would say that the server does not know what a difference is.
		return nil, read.ListInstead("the server does not have this collection")
	}
	if err != nil {
		return nil, err
	}
	q.User = request.RecordFrom(r.Context()).User
	q.Verb = request.VerbList // even if the query asks for a watch, which has no meaning here
	if !request.Offers(q.Resource, request.VerbList) {
		return nil, status.MethodNotSupported(q.Resource, request.VerbList)
	}
	if err := s.authorizer.Authorize(r.Context(), q.AuthorizationAttributes(r)); err != nil {
		return nil, err
	}
	q.Verb = verbDifference
	if r.Method != http.MethodPost {
		return nil, status.MethodNotSupported(q.Resource, r.Method)
	}
	return q, nil
}

// difference reads the digest, compares, and writes the answer.
func (s *Server) difference(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != difference.MediaType {
		return status.Failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "a digest has the media type "+difference.MediaType)
	}
	form, err := encoding.NegotiateDifference(r, q.Resource)
	if err != nil {
		return err
	}
	body, err := encoding.ReadBody(w, r, s.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	digest, err := difference.ParseDigest(body)
	if err != nil {
		return status.BadRequest("the digest: %v", err)
	}
	opts, err := listOptions(q.Query)
	if err != nil {
		return err
	}
	d, err := s.reader.Difference(r.Context(), q.Scope(), &opts, digest)
	if err != nil {
		if apierrors.ReasonForError(err) == difference.ReasonListInstead {
			s.metrics.Difference.ListInstead.Inc()
		}
		return err
	}
	encoder := s.encoder(q.Resource, form)
	if err := encoder.Prepare(r.Context(), d.Sent()); err != nil {
		return err
	}
	answer := encoding.NewAnswer(w, r, mime.FormatMediaType(difference.MediaType, map[string]string{"items": form.ContentType()}))
	err = writeDifference(r.Context(), answer, encoder, d)
	if err == nil {
		err = answer.Finish()
	}
	if err == nil {
		s.metrics.Difference.Answered(&d.Header)
	}
	return answer.Release(err)
}

// writeDifference writes the answer.
func writeDifference(ctx context.Context, a *encoding.Answer, p encoding.Encoder, d *read.Difference) error {
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
		item := p.DocumentAppender(ctx)
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

// differencePath returns the path of the collection that a difference is
// wanted of.
func differencePath(path string) (collection string, ok bool) {
	collection, ok = strings.CutPrefix(path, difference.Path)
	return collection, ok && strings.HasPrefix(collection, "/")
}
