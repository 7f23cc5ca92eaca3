package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/apiserver/reauthorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/apiserver/websocket"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/delta"
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
	opts, err := request.ListOptions(q.Query)
	if err != nil {
		return err
	}
	watch, err := s.reader.Watch(q.Scope(), &opts)
	if err != nil {
		return err
	}
	if r.Header.Get(watchstream.HistoryHeader) == watchstream.Exact {
		watch.EndAtGaps()
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		if err := encoding.DiscardBody(w, r, s.config.MaxBodyBytes); err != nil {
			return err
		}
	}
	if !s.watches.TryAcquire(q.User, 1) {
		s.metrics.Rejected.Inc()
		return status.TooManyRequests("too many watches are open, of this user (--max-watches-per-user) or of all (--max-watches): close some", 1)
	}
	record := request.RecordFrom(r.Context())
	watching := &openWatch{server: s, record: record, origin: watchstream.OriginOf(r), began: time.Now()}
	record.AtEnd(watching.release)
	ended := watching.ended
	if s.config.UI != nil && q.Query.Has(debugapi.DemonstrationParameter) && !websocket.IsUpgrade(r) {
		if paced := s.config.UI.Demonstrations.Open(r.Context(), w, q.User, q.Query.Get(debugapi.DemonstrationParameter)); paced != nil {
			defer paced.Close()
			w, ended = paced, nil // it writes on this goroutine
		}
	}
	if span := trace.SpanFromContext(r.Context()); span.IsRecording() {
		watching.span = span
	}
	if watching.selectors, err = s.holdSelectors(q.User, &opts); err != nil {
		return err
	}
	labels := prometheus.Labels{"group": q.Resource.Group, "version": q.Resource.Version, "resource": q.Resource.Plural}
	encoder := encoding.NewEventEncoder(s.verbs.Encoder(q.Resource, form), include)
	if q.Visible == nil && !websocket.IsUpgrade(r) {
		watching.recent = encoder.UseDeltas(r.Header, w.Header(), userShare{s.deltaBases, q.User})
	}
	q.Query = nil // what has been read of it need not be held for as long as the watch is open
	watching.open = s.metrics.Watches.With(labels)
	watching.open.Inc()
	if record.Audit != nil {
		watching.header = w.Header()
	}
	stream := watchstream.Watch{
		Watch: watch, Encoder: encoder,
		Sent: s.metrics.Events.With(labels), Record: record, Origin: watching.origin, Ended: ended,
		Rights: reauthorization.Rights{
			Watch: &q.Authorized, Impersonation: record.Impersonation,
			Filtered: q.Visible != nil, // such a watch follows its user's rights by itself
		},
	}
	if opts.AllowWatchBookmarks {
		stream.Name = watchstream.NameOf(r)
	}
	if websocket.IsUpgrade(r) {
		flow := s.flow(w, r, &q.Authorized, s.readSeats)
		return s.sockets.Serve(w, r, form, s.config.WriteTimeout, func(ctx context.Context, socket *websocket.Socket) {
			slot := s.readSlots.Slot(ctx, q.User, flow)
			socket.GuardWrites(slot)
			stream.Slot = slot
			s.streams.Serve(ctx, socket, stream)
		})
	}
	stream.Slot = s.watchSlot(w, r, q)
	s.streams.ServeHTTP(r.Context(), w, stream)
	return nil
}

// openWatch is what a watch holds of what the server has for all, and what is logged and
// counted at its end.
type openWatch struct {
	server    *Server
	record    *request.Record
	origin    watchstream.Origin
	began     time.Time
	header    http.Header // of the answer, if it is audited
	span      trace.Span  // of the request; nil if it is not traced
	selectors int64
	recent    *delta.Recent    // nil: the watch is without deltas
	open      prometheus.Gauge // nil: it is not counted
}

// release gives back what the watch holds.
func (o *openWatch) release() {
	s, user := o.server, o.record.User
	s.watches.Release(user, 1)
	s.selectors.Release(user, o.selectors)
	if o.recent != nil {
		o.recent.Close()
	}
	if o.open != nil {
		o.open.Dec()
	}
}

// ended ends the request of a watch whose handler has returned before.
func (o *openWatch) ended() {
	if o.span != nil {
		defer endTrace(o.span, o.origin.Method, o.record)
	}
	o.record.End()
	if o.record.Audit != nil {
		completeAudit(o.header, o.record)
	}
	o.server.observe(o.origin.Method, o.origin.URI, o.origin.Agent, o.record, o.began)
}

// userShare is what one user may take of a Limiter.
type userShare struct {
	limiter *inflight.Limiter
	user    auth.User
}

// TryAcquire implements delta.Budget.
func (u userShare) TryAcquire(n int64) bool { return u.limiter.TryAcquire(u.user, n) }

// Release implements delta.Budget.
func (u userShare) Release(n int64) { u.limiter.Release(u.user, n) }
