package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
)

// list answers with the objects of a collection, all of one revision. Its JSON is
// the concatenation of the cached objects.
func (s *Server) list(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	form, err := encoding.Negotiate(r, encoding.ListOffer.For(q.Resource))
	if err != nil {
		return err
	}
	include, err := encoding.IncludeObject(q.Query)
	if err != nil {
		return err
	}
	opts, err := listOptions(q.Query)
	if err != nil {
		return err
	}
	page, err := s.reader.List(r.Context(), q.Scope(), &opts)
	if err != nil {
		return err
	}
	encoder := s.encoder(q.Resource, form)
	if err := encoder.Prepare(r.Context(), page.Items); err != nil {
		return err
	}
	return encoding.WriteList(w, r, encoder, include, page)
}
