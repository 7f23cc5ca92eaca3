package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/read"
)

// list answers with the objects of a collection, all of one revision if they are stored. Its JSON
// is the concatenation of the cached objects.
func (h *Handlers) list(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	form, err := encoding.Negotiate(r, encoding.ListOffer.For(q.Resource))
	if err != nil {
		return err
	}
	include, err := encoding.IncludeObject(q.Query)
	if err != nil {
		return err
	}
	opts, err := request.ListOptions(q.Query)
	if err != nil {
		return err
	}
	page, err := h.page(r, q, &opts)
	if err != nil {
		return err
	}
	encoder := h.Encoder(q.Resource, form)
	if err := encoder.Prepare(r.Context(), page.Items); err != nil {
		return err
	}
	if name := watchstream.NameOf(r); name != "" && h.config.Streams.RequestProgress(name, q.User, q.Resource) {
		w.Header().Set(watchstream.ProgressHeader, name)
	}
	return encoding.WriteList(w, r, encoder, include, page)
}

func (h *Handlers) page(r *http.Request, q *request.Info, opts *metav1.ListOptions) (read.Page, error) {
	switch {
	case q.Resource == componentStatuses:
		return h.listComponentStatuses(r.Context(), q, opts)
	case r.Header.Get(watchstream.HistoryHeader) == watchstream.Retained:
		return h.config.Reader.ListRetained(r.Context(), q.Scope(), opts)
	}
	return h.config.Reader.List(r.Context(), q.Scope(), opts)
}
