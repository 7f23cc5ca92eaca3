package handlers

import (
	"context"
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// get answers with one object, from the cache if it is stored.
func (h *Handlers) get(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	form, err := encoding.Negotiate(r, encoding.ObjectOffer.For(q.Resource))
	if err != nil {
		return err
	}
	if request.IsTrue(q.Query, "export") {
		return status.BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	object, err := h.object(r.Context(), q)
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

func (h *Handlers) object(ctx context.Context, q *request.Info) (*watchcache.Object, error) {
	if q.Resource == componentStatuses {
		return h.componentStatus(ctx, q.Name)
	}
	return h.config.Reader.Get(ctx, q.Scope(), q.Query.Get("resourceVersion"))
}
