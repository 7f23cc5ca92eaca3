package handlers

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// get answers with one object from the cache.
func (h *Handlers) get(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	form, err := encoding.Negotiate(r, encoding.ObjectOffer.For(q.Resource))
	if err != nil {
		return err
	}
	if request.IsTrue(q.Query, "export") {
		return status.BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	object, err := h.config.Reader.Get(r.Context(), q.Scope(), q.Query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	defer request.MeasureAnswer(w).End()
	body, err := h.Encoder(q.Resource, form).Document(r.Context(), object, q.Query)
	if err != nil {
		return err
	}
	encoding.WriteBody(w, r, http.StatusOK, form.ContentType(), body)
	return nil
}
