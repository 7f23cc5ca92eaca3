package apiserver

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/apiserver/websocket"
	"github.com/levelwire/levelwire/server/internal/status"
)

// watch answers with the changes of a collection as they happen. Package
// watchstream writes them until the watch ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if s.isStopping() {
		return status.ShuttingDown() // clients take a watch that ends at once for a reason to list
	}
	form, err := encoding.Negotiate(r, encoding.WatchOffer.For(q.Resource))
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
	watch, err := s.reader.Watch(q.Scope(), &opts)
	if err != nil {
		return err
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		if _, err := encoding.ReadBody(w, r, s.config.MaxBodyBytes); err != nil { // which ends the time for it
			return err
		}
	}
	labels := prometheus.Labels{"group": q.Resource.Group, "version": q.Resource.Version, "resource": q.Resource.Plural}
	q.Query = nil // what has been read of it need not be held for as long as the watch is open
	open := s.metrics.Watches.With(labels)
	open.Inc()
	defer open.Dec()
	stream := watchstream.Watch{
		Watch: watch, Encoder: encoding.NewEventEncoder(s.encoder(q.Resource, form), include),
		Sent: s.metrics.Events.With(labels), Record: request.RecordFrom(r.Context()),
	}
	if websocket.IsUpgrade(r) {
		return s.sockets.Serve(w, r, form, s.config.WriteTimeout, func(ctx context.Context, socket *websocket.Socket) {
			s.streams.Serve(ctx, socket, stream)
		})
	}
	s.streams.ServeHTTP(r.Context(), w, stream)
	return nil
}
