package apiserver

import (
	"context"
	"net/http"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// get answers with one object from the cache.
func (s *Server) get(w http.ResponseWriter, r *http.Request, q *request) error {
	form, err := negotiate(r, offerFor(objectForm, q.resource))
	if err != nil {
		return err
	}
	object, err := s.reader.Get(r.Context(), q.scope(), q.query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	body, err := s.presentOne(r.Context(), q, form, object)
	if err != nil {
		return err
	}
	writeBody(w, r, http.StatusOK, form.contentType(), body)
	return nil
}

// presentOne encodes a cached object. Only tables and CBOR need it decoded.
func (s *Server) presentOne(ctx context.Context, q *request, form accepted, object *watchcache.Object) ([]byte, error) {
	p := s.presenter(q.resource, form)
	if form.media == mediaProtobuf {
		return p.envelope(ctx, object)
	}
	if form.media == mediaCBOR {
		return p.appendCBOR(ctx, []byte(resource.CBORTag), object)
	}
	shown, err := p.json(ctx, object)
	if err != nil {
		return nil, err
	}
	if form.as != asTable {
		return encodeShape(form, q, nil, shown)
	}
	obj, err := q.resource.DecodeShown(shown)
	if err != nil {
		return nil, err
	}
	return encodeShape(form, q, obj, shown)
}
