package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// get answers with one object from the cache.
func (s *Server) get(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	form, err := encoding.Negotiate(r, encoding.ObjectOffer.For(q.Resource))
	if err != nil {
		return err
	}
	object, err := s.reader.Get(r.Context(), q.Scope(), q.Query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	body, err := s.encoder(q.Resource, form).Document(r.Context(), object, q.Query)
	if err != nil {
		return err
	}
	encoding.WriteBody(w, r, http.StatusOK, form.ContentType(), body)
	return nil
}

// encoder returns the encoder of an answer.
func (s *Server) encoder(res *resource.Resource, form encoding.Form) encoding.Encoder {
	return encoding.NewEncoder(res, form, s.metrics.CountEncode)
}
