package histories

import (
	"net/http"
	"sync/atomic"
)

// tap sits in a client's transport and counts the lists that it began: the
// first pages, and streaming lists.
type tap struct {
	lists, streams atomic.Int64
}

func (p *tap) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		query := request.URL.Query()
		watches := query.Get("watch") == "true" || query.Get("watch") == "1"
		streams := query.Get("sendInitialEvents") == "true"
		answer, err := next.RoundTrip(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			return answer, err
		}
		if streams {
			p.streams.Add(1)
		}
		if request.Method == http.MethodGet && (streams || !watches && query.Get("continue") == "") {
			p.lists.Add(1)
		}
		return answer, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
