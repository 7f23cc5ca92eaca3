// Package debug publishes what goes on inside a program's informers, as JSON, for people, for
// the page at /ui of a Levelwire server, and for other programs:
//
//	mux.Handle("/debug/informers", debug.Informers("my-controller", factory))
//
// It has names of informers and handlers, and no objects. Serve it where only operators get,
// such as on the loopback. A request from this machine must name this machine, as localhost or by a
// loopback address: a site whose name leads to 127.0.0.1 (DNS rebinding) reads nothing.
package debug

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/debugapi"
)

// Source is where the informers are found; an informer.Factory is one. Those that are made later
// are found, too.
type Source interface {
	Informers() []informer.Informer
}

// Informers returns the handler of GET requests for the insides of all informers of a source: the
// length of the DeltaFIFO, the queues of handlers, freshness, and what was asked of the server. Pages
// of servers on the same machine may read it, other sites may not. It is safe for concurrent use.
func Informers(program string, source Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		if remote, _, _ := net.SplitHostPort(r.RemoteAddr); isLoopbackHost(remote) && !isLoopback("http://"+r.Host) {
			http.Error(w, "from this machine, the informers are read at localhost or 127.0.0.1, and not by another name", http.StatusMisdirectedRequest)
			return
		}
		if origin := r.Header.Get("Origin"); isLoopback(origin) {
			header.Set("Access-Control-Allow-Origin", origin)
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "the informers are read with GET", http.StatusMethodNotAllowed)
			return
		}
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		out := debugapi.Informers{Now: time.Now().UTC().Truncate(time.Millisecond), Program: program, Items: []debugapi.Informer{}}
		for _, i := range source.Informers() {
			out.Items = append(out.Items, describe(i))
		}
		_ = json.NewEncoder(w).Encode(out) // fails only with the connection
	})
}

// isLoopback reports whether an origin is a site of this machine.
func isLoopback(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || origin == "" {
		return false
	}
	return isLoopbackHost(u.Hostname())
}

// isLoopbackHost reports whether a host without a port is this machine, whatever DNS says.
func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// describe reads one informer.
func describe(i informer.Informer) debugapi.Informer {
	stats, fresh := i.Stats(), i.Freshness()
	out := debugapi.Informer{
		Name: i.Name(), Synced: fresh.Synced, AgeMillis: -1, ResourceVersion: fresh.Version,
		Objects: stats.Objects, Bytes: i.EstimateBytes(), Queued: stats.Queued, Events: stats.Events,
		Lists: stats.Reflector.ListCount(), Watches: stats.Reflector.Watches, Handlers: []debugapi.Handler{},
	}
	if !fresh.AsOf.IsZero() {
		out.AgeMillis = fresh.Age.Milliseconds()
	}
	for _, n := range stats.Reflector.Resumes {
		out.Resumes += n
	}
	for _, n := range stats.Reflector.Differences {
		out.Differences += n
	}
	if err := stats.Reflector.LastError; err != nil {
		out.LastError = err.Error()
	}
	for _, index := range stats.Indexes {
		out.Indexes = append(out.Indexes, debugapi.Index{Name: index.Name, Values: index.Values})
	}
	for _, h := range stats.Handlers {
		handler := debugapi.Handler{
			Name: h.Name, Queued: h.Queued, LagMillis: h.Lag.Milliseconds(), BusyMillis: h.Busy.Milliseconds(),
			Delivered: h.Delivered, Coalesced: h.Coalesced, Panics: h.Panics,
		}
		if h.Err != nil {
			handler.Error = h.Err.Error()
		}
		out.Handlers = append(out.Handlers, handler)
	}
	return out
}
