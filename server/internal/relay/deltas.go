package relay

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/delta"
)

// deltasKey is the context key of requests that ask for deltas. The value is a *bool: whether
// the answer says that its events carry them.
type deltasKey struct{}

// asksForDeltas sends the header of deltas with the requests whose context says so, and notes
// whether the upstream has heeded it.
type asksForDeltas struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a asksForDeltas) RoundTrip(req *http.Request) (*http.Response, error) {
	used, ok := req.Context().Value(deltasKey{}).(*bool)
	if !ok {
		return a.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.Header.Set(delta.Header, delta.Zstd)
	response, err := a.next.RoundTrip(req)
	if err == nil {
		*used = response.Header.Get(delta.Header) == delta.Zstd
	}
	return response, err
}

// CloseIdleConnections closes those of the round tripper below, which http.Client looks for.
func (a asksForDeltas) CloseIdleConnections() {
	if c, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// withDeltas returns the context for a watch that is to have deltas, if the relay wants them.
// After a delta whose base was missing one watch does without.
// used is set to whether it has them.
func (s *source) withDeltas(ctx context.Context, used *bool) context.Context {
	if !s.relay.opts.Deltas || s.withoutDeltas.Swap(false) {
		return ctx
	}
	return context.WithValue(ctx, deltasKey{}, used)
}

// eventStream is a watch of the upstream, whose deltas it resolves.
type eventStream struct {
	watch     *client.Watch[*object]
	source    *source
	recent    delta.Recent
	coalesced bool // it may begin with coalesced history
	deltas    bool // its events carry deltas; otherwise what looks like one is an object
}

// next returns the next event. It leaves out those that are deltas from a state that the
// cache does not have any more, because it has got the event from another stream.
func (e *eventStream) next() (client.WatchEvent[*object], error) {
	for {
		event, err := e.watch.Next()
		if err != nil || !e.deltas {
			return event, err
		}
		if !delta.Is(event.Object.json) {
			e.remember(event.Type, event.Object)
			return event, nil
		}
		known, err := e.resolve(event.Type, event.Object)
		if err != nil {
			e.source.withoutDeltas.Store(true)
			e.source.relay.counts.deltasFailed.Add(1)
			e.source.relay.opts.Logger.Warn("a change could not be made of what the cache has: the stream begins anew without deltas",
				"resource", e.source.res.GroupVersionResource(), "error", err)
			e.watch.Close()
			return event, err
		}
		if !known {
			return event, nil
		}
	}
}

// resolve gives an object its JSON. known reports that the cache has the event.
func (e *eventStream) resolve(typ apiwatch.EventType, o *object) (known bool, err error) {
	d, err := delta.Parse(o.json)
	if err != nil {
		return false, err
	}
	version, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	if err != nil {
		return false, fmt.Errorf("a delta with the resourceVersion %q", o.ResourceVersion)
	}
	var base []byte
	if d.Base != (delta.Reference{}) {
		base = e.recent.Find(d.Base)
		if held, ok := e.source.cache.Tree().Get(d.Base.Key); base == nil && ok && int64(held.Revision) == d.Base.ResourceVersion {
			base = held.JSON()
		}
		if base == nil {
			if typ != apiwatch.Added && int64(e.source.cache.Reached()) >= version {
				return true, nil
			}
			return false, fmt.Errorf("%w: %s at version %d is not there", delta.ErrBase, d.Base.Key, d.Base.ResourceVersion)
		}
	}
	json, err := d.Apply(base)
	if err != nil {
		return false, err
	}
	resolved := object{json: json}
	if err := resolved.read(); err != nil {
		return false, err
	}
	if resolved.Namespace != o.Namespace || resolved.Name != o.Name || resolved.ResourceVersion != o.ResourceVersion {
		return false, fmt.Errorf("a delta of %s/%s at version %s gives %s/%s at version %s",
			o.Namespace, o.Name, o.ResourceVersion, resolved.Namespace, resolved.Name, resolved.ResourceVersion)
	}
	o.json = json
	e.remember(typ, o)
	e.source.relay.counts.deltas.Add(1)
	return false, nil
}

// remember remembers an object that is new, as the sender does, whether it has come as a delta
// or not.
func (e *eventStream) remember(typ apiwatch.EventType, o *object) {
	version, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	if typ != apiwatch.Added || err != nil {
		return
	}
	e.recent.Add(delta.Reference{Key: e.source.res.Key(o.Namespace, o.Name), ResourceVersion: version}, o.json, nil)
}
