package apiserver

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/levelwire/levelwire/internal/filteredlist"
	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// levelOf returns at which level a request waits for other handlers, and whether it waits
// neither for them nor for seats.
func (s *Server) levelOf(a *auth.Attributes) (level runqueue.Level, exempt bool) {
	if s.config.Fairness == nil {
		return runqueue.Level{}, a.User.In(auth.Masters)
	}
	m := s.config.Fairness.Classify(a)
	return runqueue.Level{Name: m.Level, Shares: m.Shares}, m.Exempt
}

// flow returns what a request takes its seats for. Without priority and fairness, it is
// the user, and the seats are the given ones.
func (s *Server) flow(w http.ResponseWriter, r *http.Request, a *auth.Attributes, seats *inflight.UserSeats) fairqueue.Flow {
	if s.config.Fairness == nil {
		return seats.Flow(a.User)
	}
	m := s.config.Fairness.Classify(a)
	header := w.Header()
	header[inflight.FlowSchemaHeader], header[inflight.PriorityLevelHeader] = m.SchemaUID, m.LevelUID
	m.Flow.Seats = s.width(r, a)
	return m.Flow
}

const (
	// objectsPerSeat and bytesPerSeat are the work that one seat is for: objects that
	// are read in the cache, and JSON that is written.
	objectsPerSeat = 100
	bytesPerSeat   = 100 << 10
	maxSeats       = 10
	// maxParsedSelector bounds the selectors that are parsed before a request has a seat.
	maxParsedSelector = 2 << 10
)

// width returns how many seats a request needs. Those that answer with a collection, or
// delete it, need as many as the objects in the cache say that they look at.
func (s *Server) width(r *http.Request, a *auth.Attributes) int {
	switch {
	case a.Resource == "" || a.Name != "" || a.Subresource != "":
		return 1
	case a.Verb != request.VerbList && a.Verb != request.VerbWatch && a.Verb != request.VerbDeleteCollection:
		return 1
	}
	res := s.lookup(a.Group, a.Version, a.Resource)
	if res == nil {
		return 1
	}
	var query url.Values
	if r.URL.RawQuery != "" {
		query, _ = url.ParseQuery(r.URL.RawQuery) // what is wrong with it is answered later
	}
	if a.Verb == request.VerbWatch && !hasInitialEvents(query) {
		return 1
	}
	objects, size := s.reader.Extent(read.Scope{Resource: res, Namespace: a.Namespace}, s.partOf(query, a, res))
	selects := query.Has("labelSelector") || query.Has("fieldSelector") || query.Has("shardSelector")
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 && limit < objects && !selects {
		size = size * int64(limit) / int64(objects)
		objects = limit
	}
	seats := max(int64(objects+objectsPerSeat-1)/objectsPerSeat, (size+bytesPerSeat-1)/bytesPerSeat)
	return int(min(max(seats, 1), maxSeats))
}

// partOf returns what a request asks for of a collection, as far as that is known before it has a
// seat. What its user may see is known if a request has asked for it before.
func (s *Server) partOf(query url.Values, a *auth.Attributes, res *resource.Resource) read.Part {
	part := read.Part{Labels: query.Get("labelSelector"), Fields: query.Get("fieldSelector"), Most: maxSeats * objectsPerSeat}
	if len(part.Labels)+len(part.Fields) > maxParsedSelector {
		part.Labels, part.Fields = "", ""
	}
	if value := query.Get(filteredlist.Parameter); value != "" && s.config.Visible != nil && res.Namespaced && a.Namespace == "" && a.Verb != request.VerbDeleteCollection {
		part.Namespaces = s.config.Visible.Known(a.User, a.Group, a.Resource, visibleVerbs(value, a.Verb))
	}
	return part
}

// hasInitialEvents reports whether a watch begins with the objects that there are.
func hasInitialEvents(query url.Values) bool {
	version := query.Get("resourceVersion")
	return version == "" || version == "0" || request.IsTrue(query, "sendInitialEvents")
}
