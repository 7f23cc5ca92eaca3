package interop

import (
	"net/http"
	"strings"
	"sync"
)

// A tap sits in a client's transport: it sees how an informer lists and
// watches, and can shorten what it asks for.
type tap struct {
	// watchSeconds, unless empty, replaces timeoutSeconds of each watch.
	watchSeconds string

	mu      sync.Mutex
	lists   int // lists begun, in pages or as streams
	streams int // those that were streams
	watches int // watches begun, streaming lists among them
	media   map[string]bool
	proto   map[string]bool
	changed chan struct{}
}

func newTap() *tap {
	return &tap{media: map[string]bool{}, proto: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// tapStats is what a tap saw.
type tapStats struct {
	lists, streams, watches int
	media, proto            []string
}

func (p *tap) stats() tapStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := tapStats{lists: p.lists, streams: p.streams, watches: p.watches}
	for media := range p.media {
		stats.media = append(stats.media, media)
	}
	for proto := range p.proto {
		stats.proto = append(stats.proto, proto)
	}
	return stats
}

// wrap puts the tap before a transport.
func (p *tap) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		query := request.URL.Query()
		watching := query.Get("watch") == "true" || query.Get("watch") == "1"
		if watching && p.watchSeconds != "" {
			query.Set("timeoutSeconds", p.watchSeconds)
			request = request.Clone(request.Context())
			request.URL.RawQuery = query.Encode()
		}
		answer, err := next.RoundTrip(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			return answer, err
		}
		p.saw(watching, query.Get("sendInitialEvents") == "true", query.Get("continue") != "", answer)
		return answer, nil
	})
}

func (p *tap) saw(watching, streaming, nextPage bool, answer *http.Response) {
	media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.media[media], p.proto[answer.Proto] = true, true
	if watching {
		p.watches++
	}
	if streaming {
		p.streams++
	}
	if streaming || !watching && !nextPage {
		p.lists++
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
