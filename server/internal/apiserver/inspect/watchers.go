package inspect

import (
	"cmp"
	"container/heap"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

const (
	defaultWatchers = 200
	maxWatchers     = 5000
)

// orders are the orders of watchers, the first before the others.
var orders = map[string]func(a, b *debugapi.Watcher) int{
	"lag": func(a, b *debugapi.Watcher) int {
		return cmp.Or(cmp.Compare(b.LagEvents, a.LagEvents), cmp.Compare(b.LagMillis, a.LagMillis), cmp.Compare(b.ID, a.ID))
	},
	"bytes": func(a, b *debugapi.Watcher) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.ID, a.ID))
	},
	"opened": func(a, b *debugapi.Watcher) int { return cmp.Compare(b.ID, a.ID) },
}

// watchers answers debugapi.WatchersPath.
func (h *Handler) watchers(r *http.Request) (any, error) {
	query := r.URL.Query()
	limit, err := Number(r, "limit", defaultWatchers, maxWatchers)
	if err != nil {
		return nil, err
	}
	order := orders[cmp.Or(query.Get("sort"), "lag")]
	if order == nil {
		return nil, status.BadRequest("sort=%q: it is lag, bytes or opened", query.Get("sort"))
	}
	wanted := func(res *resource.Resource) bool {
		return (!query.Has("resource") || query.Get("resource") == res.Plural) && (!query.Has("group") || query.Get("group") == res.Group)
	}
	now := time.Now()
	first := firstWatchers{order: order, limit: limit}
	h.Streams.List(wanted, func(s watchstream.Status) bool {
		first.add(watcherOf(&s, now))
		return r.Context().Err() == nil
	})
	return debugapi.Watchers{Now: Rounded(now), Total: h.Streams.Open(), Matching: first.seen, Items: first.sorted()}, nil
}

// watcherOf describes a stream.
func watcherOf(s *watchstream.Status, now time.Time) debugapi.Watcher {
	var location url.URL
	if u, err := url.ParseRequestURI(s.Origin.URI); err == nil { // it has been served, so it can be parsed
		location = *u
	}
	query := location.Query()
	w := debugapi.Watcher{
		ID: s.ID, User: s.User.Name, Agent: s.Origin.Agent, Remote: s.Origin.Remote, Protocol: s.Origin.Protocol, Format: s.Format,
		Group: s.Resource.Group, Version: s.Resource.Version, Resource: s.Resource.Plural,
		LabelSelector: query.Get("labelSelector"), FieldSelector: query.Get("fieldSelector"),
		Demonstration: query.Get(debugapi.DemonstrationParameter),
		Opened:        Rounded(s.Opened), Deadline: Rounded(s.Deadline), Requested: int64(s.Revision), State: string(s.State),
	}
	if path, ok := request.ParsePath(location.Path); ok {
		w.Namespace = path.Namespace
		if path.Name != "" && w.FieldSelector == "" {
			w.FieldSelector = "metadata.name=" + path.Name
		}
	}
	if s.Origin.WebSocket {
		w.Protocol = "WebSocket"
	}
	if s.State == watchstream.Busy {
		return w
	}
	w.Began, w.Phase = s.Cursor.Began.String(), s.Cursor.Phase.String()
	w.CoalescedThrough, w.Position = int64(s.Cursor.CoalescedThrough), int64(s.Cursor.Reached)
	w.Events, w.Bytes = s.Events, s.Bytes
	events, since := s.Cursor.Lag()
	if w.LagEvents = events; events > 0 && !since.IsZero() {
		w.LagMillis = max(now.Sub(since).Milliseconds(), 0)
	}
	return w
}

// firstWatchers keeps the first watchers of an order, so that a million of them need the memory
// of a few. It is a heap with the last of those on top.
type firstWatchers struct {
	order func(a, b *debugapi.Watcher) int
	limit int
	seen  int
	items []debugapi.Watcher
}

func (f *firstWatchers) add(w debugapi.Watcher) {
	f.seen++
	switch {
	case len(f.items) < f.limit:
		heap.Push(f, w)
	case f.limit > 0 && f.order(&w, &f.items[0]) < 0:
		f.items[0] = w
		heap.Fix(f, 0)
	}
}

func (f *firstWatchers) sorted() []debugapi.Watcher {
	slices.SortFunc(f.items, func(a, b debugapi.Watcher) int { return f.order(&a, &b) })
	if f.items == nil {
		return []debugapi.Watcher{}
	}
	return f.items
}

// Len implements heap.Interface.
func (f *firstWatchers) Len() int { return len(f.items) }

// Less implements heap.Interface.
func (f *firstWatchers) Less(i, j int) bool { return f.order(&f.items[i], &f.items[j]) > 0 }

// Swap implements heap.Interface.
func (f *firstWatchers) Swap(i, j int) { f.items[i], f.items[j] = f.items[j], f.items[i] }

// Push implements heap.Interface.
func (f *firstWatchers) Push(x any) { f.items = append(f.items, x.(debugapi.Watcher)) }

// Pop implements heap.Interface.
func (f *firstWatchers) Pop() any {
	last := f.items[len(f.items)-1]
	f.items = f.items[:len(f.items)-1]
	return last
}
