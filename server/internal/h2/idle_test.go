package h2

import (
	"net/http"
	"runtime"
	"testing"

	"golang.org/x/net/http2"
)

// TestIdleStreamsAreSmall opens 10,000 streams that wait, and counts what the
// server keeps for them besides their goroutines' stacks.
func TestIdleStreamsAreSmall(t *testing.T) {
	const conns, streams, most = 10, 1000, 4096
	opened := make(chan struct{})
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		opened <- struct{}{}
		<-r.Context().Done()
	}, func(o *Options) { o.MaxConcurrentStreams = streams })
	var peers []*peer
	for range conns {
		peers = append(peers, f.dial().greet())
	}
	before := liveHeap()
	for _, p := range peers {
		go func() {
			for { // the connection must not be stuck
				if _, err := p.framer.ReadFrame(); err != nil {
					return
				}
			}
		}()
		for range streams {
			id := p.next
			p.next += 2
			must(t, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true,
				BlockFragment: p.encode(get("user-agent", "idle", "accept", "application/json", "authorization", "Bearer 1234")...)}))
		}
		for range streams {
			<-opened
		}
	}
	each := float64(liveHeap()-before) / (conns * streams)
	t.Logf("%.0f bytes for each idle stream", each)
	if each > most {
		t.Errorf("an idle stream takes %.0f bytes of heap, more than %d", each, most)
	}
	for _, p := range peers {
		p.conn.Close()
	}
}

func liveHeap() uint64 {
	var m runtime.MemStats
	for range 3 { // pools empty in two
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
