package apiserver

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
)

const (
	// bodiesInMemory is how many bodies of MaxBodyBytes are kept at the same time by default.
	// Most are a thousand times smaller.
	bodiesInMemory = 85
	// selectorBytes bounds the selectors of all open watches by default: parsed, they take
	// up to ten times as much. Each watch with selectors counts with selectorOverhead more.
	selectorBytes    = 16 << 20
	selectorOverhead = 64
	// maxDeltaBases bounds the former objects that all watches with deltas hold, each up to
	// 2 MiB. Beyond it new objects are sent whole.
	maxDeltaBases = 64 << 20
	// maxWindowRows bounds the rows of all followed windows. Each window counts with
	// windowOverhead more, for what it computes: there are a few thousand at most.
	maxWindowRows  = 200_000
	windowOverhead = 50
)

// limited bounds the number of requests at a time and the time of each, and routes the
// request. Watches have a deadline of their own, and hold a slot only until they have
// sent what they begin with: idle ones cost next to nothing.
func (s *Server) limited(w *request.Recorder, r *http.Request) {
	record := request.RecordFrom(r.Context())
	t := s.target(r, record.User)
	if t.isLong(r) {
		s.startTask(w, record, &t.attributes)
		defer record.Task.End()
		s.route(w, r, &t)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.RequestTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	if r.ProtoMajor == 2 {
		// A client that opens its window by a byte now and then would otherwise be
		// answered for as long as it likes. The error that follows the end of the
		// time has WriteTimeout of its own.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.RequestTimeout + s.config.WriteTimeout))
	}
	if authentication.NeedsNoCredentials(r.URL.Path) {
		s.route(w, r, &t)
		return
	}
	s.startTask(w, record, &t.attributes)
	defer record.Task.End()
	_, isDifference := differencePath(r.URL.Path)
	isGet := r.Method == http.MethodGet || r.Method == http.MethodHead
	slots, seats := s.writeSlots, s.writeSeats
	if isGet || isDifference {
		slots, seats = s.readSlots, s.readSeats
	}
	a := &admission{server: s, record: record, user: record.User, slot: slots.Slot(ctx, record.User, s.flow(w, r, &t.attributes, seats))}
	defer a.release()
	w.GuardWrites(a.slot)
	t.slot = a.slot
	if hasBody := r.Body != nil && r.Body != http.NoBody; hasBody && !isGet {
		record.Body = a // which takes the slot when the body is there
	} else if err := a.Complete(); err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	s.route(w, r, &t)
}

// startTask waits until a request's handler may compute, unless it is exempt.
func (s *Server) startTask(w *request.Recorder, record *request.Record, a *auth.Attributes) {
	user := record.User.Name
	level, exempt := s.levelOf(a)
	if exempt {
		user = ""
	}
	if connection, ok := w.Unwrap().(interface {
		ServedFor(user string, level runqueue.Level)
	}); ok {
		connection.ServedFor(user, level)
	}
	if user != "" {
		record.Task.Start(s.handlers, level, user)
	}
}

// authorizeTarget is authorize. Requests that need not end, such as watches, hold no slot
// meanwhile, so those that wait for an authorizer that is asked over the network are
// bounded by themselves.
func (s *Server) authorizeTarget(r *http.Request, t *target) error {
	if t.isLong(r) {
		return s.authorizeWithoutSlot(r, t.attributes)
	}
	return s.authorize(r, t.attributes)
}

func (s *Server) authorizeWithoutSlot(r *http.Request, a auth.Attributes) error {
	done, err := s.undecided(a.User)
	if err != nil {
		return err
	}
	defer done()
	return s.authorize(r, a)
}

// holdConnection has the user of a connection's first request hold it. A user that holds too
// many is refused, and the client is asked to close the connection.
func (s *Server) holdConnection(w http.ResponseWriter, conn *listen.Conn, r *http.Request, user auth.User) error {
	if err := conn.Hold(s.holderOf(r, user), ofTheSystem(user)); err != nil {
		s.metrics.Rejected.Inc()
		w.Header().Set("Connection", "close") // over HTTP/2 it is a GOAWAY
		return status.TooManyRequests(err.Error(), 1)
	}
	return nil
}

// holderOf returns who holds the connection of a user's request: the proxy that has named the
// user, which opens connections for requests of many, or all service accounts of a namespace,
// since whoever may make one may make many. Those of kube-system are made by administrators.
func (s *Server) holderOf(r *http.Request, user auth.User) listen.Holder {
	if proxy, ok := s.authenticator.ProxyOf(r); ok {
		return listen.Holder{Kind: listen.Proxy, Name: proxy}
	}
	if namespace, account, ok := auth.SplitServiceAccount(user.Name); ok && namespace != metav1.NamespaceSystem {
		return listen.Holder{Kind: listen.Namespace, Name: namespace, Account: account}
	}
	return listen.Holder{Name: user.Name}
}

// ofTheSystem reports whether a user is one for which some connections are kept: an
// administrator, a node, a component of the control plane, or a service account of
// kube-system.
func ofTheSystem(user auth.User) bool {
	namespace, _, account := auth.SplitServiceAccount(user.Name)
	return user.In(auth.Masters) || user.In(auth.Nodes) || strings.HasPrefix(user.Name, "system:kube-") || account && namespace == metav1.NamespaceSystem
}

// undecided counts a request without a slot that waits for a decision, until done is called;
// too many of one user, or of all, are refused.
func (s *Server) undecided(user auth.User) (done func(), err error) {
	if !s.deciding.TryAcquire(user, 1) {
		s.metrics.Rejected.Inc()
		return nil, status.TooManyRequests("too many requests, of this user or of all, wait for the decision whether they are allowed", 1)
	}
	return func() { s.deciding.Release(user, 1) }, nil
}

// admission is what one request holds of what the server has for all: memory for its
// body, and a slot from the moment when the body is there.
type admission struct {
	server    *Server
	record    *request.Record
	user      auth.User
	slot      *inflight.Slot
	bodyBytes int64
}

// Reserve implements request.BodyAdmission.
func (a *admission) Reserve(n int) error {
	if !a.server.bodies.TryAcquire(a.user, int64(n)) {
		a.server.metrics.Rejected.Inc()
		return status.TooManyRequests("the server holds too many bodies of requests, of this user or of all, and has asked us to try again later", 1)
	}
	a.bodyBytes += int64(n)
	return nil
}

// Release implements request.BodyAdmission.
func (a *admission) Release(n int) {
	a.server.bodies.Release(a.user, int64(n))
	a.bodyBytes -= int64(n)
}

// Complete implements request.BodyAdmission.
func (a *admission) Complete() error {
	waiting := a.record.Measure(reporter.QueueWait)
	err := a.slot.Take()
	waiting.End()
	if err != nil {
		a.server.metrics.Rejected.Inc()
		return status.TooManyRequests("the server has received too many requests and has asked us to try again later", 1)
	}
	return nil
}

func (a *admission) release() {
	a.slot.Release()
	if a.bodyBytes > 0 {
		a.server.bodies.Release(a.user, a.bodyBytes)
	}
}

// watchSlot returns the slot of a watch.
func (s *Server) watchSlot(w http.ResponseWriter, r *http.Request, q *request.Info) watchstream.Slot {
	slot := s.readSlots.Slot(r.Context(), q.User, s.flow(w, r, &q.Authorized, s.readSeats))
	rec, ok := w.(*request.Recorder)
	if !ok {
		return slot
	}
	rec.GuardWrites(slot)
	return guardedSlot{slot, rec}
}

// guardedSlot is a slot that is given back when writes block, for as long as it is taken.
type guardedSlot struct {
	slot *inflight.Slot
	rec  *request.Recorder
}

// Wait implements watchstream.Slot.
func (g guardedSlot) Wait(ctx context.Context) error { return g.slot.Wait(ctx) }

// Release implements watchstream.Slot.
func (g guardedSlot) Release() {
	g.slot.Release()
	g.rec.GuardWrites(nil)
}

// holdSelectors counts the selectors of a watch, and returns what is to be released of
// s.selectors when the watch ends.
func (s *Server) holdSelectors(user auth.User, opts *metav1.ListOptions) (int64, error) {
	n := int64(len(opts.LabelSelector) + len(opts.FieldSelector) + len(opts.ShardSelector))
	if n == 0 {
		return 0, nil
	}
	n += selectorOverhead
	if !s.selectors.TryAcquire(user, n) {
		s.metrics.Rejected.Inc()
		return 0, status.TooManyRequests("the open watches, of this user or of all, have too many and too long selectors: close some, or select by less", 1)
	}
	return n, nil
}

// holdWindow counts a followed window, and returns what is to be released of s.windowRows when it
// ends.
func (s *Server) holdWindow(user auth.User, window read.Window) (int64, error) {
	n := int64(window.Limit) + windowOverhead
	if !s.windowRows.TryAcquire(user, n) {
		s.metrics.Rejected.Inc()
		return 0, status.TooManyRequests("too many windows are followed, by this user or by all: close some, or ask for fewer rows", 1)
	}
	return n, nil
}

// inFlightGauge is the gauge of slots that are taken, as Kubernetes has it.
func inFlightGauge(kind string, slots *inflight.Slots) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_current_inflight_requests", Help: "Requests that the server works on, without those whose clients do not read.",
		ConstLabels: prometheus.Labels{"request_kind": kind},
	}, func() float64 { return float64(slots.InUse()) })
}

// share is something that is divided among users.
type share interface {
	InUse() int64
	Capacity() int64
}

// shareGauges are the gauges of something that is divided among users.
func shareGauges(resource string, limiter share) []prometheus.Collector {
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "levelwire_user_shares_" + name, Help: help, ConstLabels: prometheus.Labels{"resource": resource},
		}, func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{
		gauge("in_use", "What users hold of something that is divided among them.", limiter.InUse),
		gauge("limit", "What there is of it; administrators have as much again, but of connections.", limiter.Capacity),
	}
}

// connectionCollectors are the metrics of connections.
func connectionCollectors(limit *listen.ConnectionLimit) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "levelwire_connections", Help: "Open connections of clients.",
		}, func() float64 { return float64(limit.Open()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_connections_refused_total", Help: "Connections that were closed at once because as many were open as may be.",
		}, func() float64 { return float64(limit.Refused()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_connections_evicted_total", Help: "Connections that no user held, closed to make room for new ones because as many were open as may be.",
		}, func() float64 { return float64(limit.Evicted()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_connections_throttled_total", Help: "Connections that were closed after a 429: their users had as many as they may, and no idle one was found.",
		}, func() float64 { return float64(limit.Throttled()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_connections_yielded_total", Help: "Idle connections that were given up for others, of the same user or of users with fewer.",
		}, func() float64 { return float64(limit.YieldedTotal()) }),
	}
}
