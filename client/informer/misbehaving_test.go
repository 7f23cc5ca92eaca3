package informer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// oddServer has the pod x/a, and x/b comes by its watches. It answers oddly until it is mended.
type oddServer struct {
	list, watch http.HandlerFunc // nil: as it should

	mu       sync.Mutex
	mended   bool
	requests int
}

const (
	oddList  = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"a","namespace":"x","uid":"1","resourceVersion":"5"}}]}`
	oddEvent = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"x","uid":"2","resourceVersion":"11"}}}`
)

func (s *oddServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.HasSuffix(r.URL.Path, "/pods") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	watched := r.URL.Query().Get("watch") != ""
	odd := s.list
	if watched {
		odd = s.watch
	}
	s.mu.Lock()
	s.requests++
	mended := s.mended
	s.mu.Unlock()
	if odd != nil && !mended {
		odd(w, r)
		return
	}
	if watched {
		oddLines(oddEvent)(w, r)
		return
	}
	_, _ = io.WriteString(w, oddList)
}

// oddLines sends lines and leaves the stream open.
func oddLines(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, line := range lines {
			_, _ = io.WriteString(w, line+"\n")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func oddBody(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func oddStatus(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// oddGzip sends a compressed body that lacks its last bytes.
func oddGzip(body string, missing int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var compressed bytes.Buffer
		z := gzip.NewWriter(&compressed)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(compressed.Bytes()[:compressed.Len()-missing])
	}
}

func oddAbort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func oddHints(n int, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for range n {
			w.WriteHeader(http.StatusEarlyHints)
		}
		then(w, r)
	}
}

// TestOddServers: whatever a server answers, an informer does not end, and does not ask in a
// loop. Its cache has no objects that there never were, it is healthy only if nothing is missing
// but what watches would bring, and when the server is as it should, so is the cache.
func TestOddServers(t *testing.T) {
	const healthy, unhealthy = true, false
	depth := 3_000_000 // a decoder that calls itself for each level would end the process
	if testing.Short() {
		depth /= 30
	}
	deep := strings.Repeat("[", depth)
	remaining := func(n string) http.HandlerFunc {
		return oddBody(strings.Replace(oddList, `"10"`, `"10","remainingItemCount":`+n, 1))
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
	}
	for name, test := range map[string]struct {
		list, watch http.HandlerFunc
		healthy     bool
	}{
		"a negative number of items that remain": {remaining("-9223372036854775808"), nil, healthy},
		"a huge number of items that remain":     {remaining("9223372036854775807"), nil, healthy},
		"more than can remain":                   {remaining("9223372036854775808"), nil, unhealthy},
		"empty pages":                            {oddBody(`{"kind":"PodList","metadata":{"resourceVersion":"10","continue":"t"},"items":[]}`), nil, unhealthy},
		"a deep item":                            {oddBody(`{"kind":"PodList","metadata":{"resourceVersion":"10"},"items":[{"other":` + deep), nil, unhealthy},
		"a deep list":                            {oddBody(`{"kind":"PodList","other":` + deep), nil, unhealthy},
		"a deep event":                           {nil, oddLines(`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"b"},"other":` + deep), unhealthy},
		"a deep event, closed":                   {nil, oddLines(`{"type":"ADDED","object":{"other":` + deep + strings.Repeat("]", len(deep)) + `}}`), unhealthy},
		"a list cut in compression":              {oddGzip(oddList, 30), nil, unhealthy},
		"an event cut in compression":            {nil, oddGzip(oddEvent[:60]+strings.Repeat(" ", 1000), 10), unhealthy},
		"an array":                               {oddBody(`[]`), oddLines(`[]`), unhealthy},
		"null":                                   {oddBody(`null`), oddLines(`null`), unhealthy},
		"an array of events":                     {nil, oddLines(`[` + oddEvent + `]`), unhealthy},
		"a bare Status":                          {nil, oddLines(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`), unhealthy},
		"a type in small letters":                {nil, oddLines(strings.Replace(oddEvent, "ADDED", "added", 1)), unhealthy},
		"a version of words":                     {nil, oddLines(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"-12 x"}}}`), unhealthy},
		"a bookmark from the past":               {nil, oddLines(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"3"}}}`), healthy},
		"hints before everything":                {oddHints(5000, oddBody(oddList)), oddHints(50, oddLines(oddEvent)), healthy},
		"redirects in a loop":                    {redirect, redirect, unhealthy},
		"redirects elsewhere":                    {elsewhere, elsewhere, unhealthy},
		"no content":                             {oddStatus(http.StatusNoContent, ""), oddStatus(http.StatusNoContent, ""), unhealthy},
		"not modified":                           {oddStatus(http.StatusNotModified, ""), oddStatus(http.StatusNotModified, ""), unhealthy},
		"aborts":                                 {oddAbort, oddAbort, unhealthy},
		"watches that abort":                     {nil, oddAbort, healthy}, // lists stand for them
	} {
		for _, kind := range []string{"typed", "dynamic", "stream"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					(&oddServer{list: test.list, watch: test.watch}).serve(t, kind, test.healthy)
				})
			})
		}
	}
}

// serve has an informer of a kind watch the server for 20 minutes, mends it, and waits for another ten.
func (s *oddServer) serve(t *testing.T, kind string, healthy bool) {
	pipe := faultnet.NewPipe()
	server := &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(pipe) }()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.New(&rest.Config{Host: "http://odd"}, client.Options{Dial: pipe.Dial, ForceHTTP1: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{Logger: quiet, Reflector: reflector.Options{PagedList: kind != "stream"}})
	var i informer.Informer
	var keys func() []string
	if kind == "dynamic" {
		dynamic := informer.Dynamic(factory, corev1.SchemeGroupVersion.WithResource("pods"), informer.ListOptions{})
		i, keys = dynamic, dynamic.Lister().Keys
	} else {
		typed := informer.For[*corev1.Pod](factory, informer.ListOptions{})
		i, keys = typed, typed.Lister().Keys
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx)
	time.Sleep(20 * time.Minute)
	synctest.Wait()
	for _, key := range keys() {
		if key != "x/a" && key != "x/b" {
			t.Errorf("the cache has %q", key)
		}
	}
	if err := i.Healthy(5 * time.Minute); (err == nil) != healthy {
		t.Errorf("healthy: %v; last error %v; contact %v; keys %v", err, i.Stats().Reflector.LastError, i.Stats().Reflector.LastContact, keys())
	}
	s.mu.Lock()
	if s.requests > 2000 { // each attempt follows ten redirects
		t.Errorf("%d requests in 20 minutes", s.requests)
	}
	s.mended = true
	s.mu.Unlock()
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	have := slices.Sorted(slices.Values(keys()))
	if err := i.Healthy(12 * time.Minute); !slices.Equal(have, []string{"x/a", "x/b"}) || err != nil || i.Err() != nil {
		t.Errorf("the mended server's cache has %v: %v, %v", have, err, i.Err())
	}
	cancel()
	factory.Shutdown()
	c.CloseIdleConnections()
	_ = server.Close()
	<-served
}
