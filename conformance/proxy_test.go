package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/levelwiretest"
)

// doc is any JSON object.
type doc = map[string]any

// fault is one way of breaking a server. Members that are nil break nothing.
type fault struct {
	// request changes what the server is asked.
	request func(r *http.Request, query url.Values)
	// answer changes what is not a stream.
	answer func(r *http.Request, a *answer)
	// event changes an event of a watch in JSON, the n-th of its stream from
	// 0; it returns what is sent instead. stop ends the stream.
	event func(r *http.Request, n int, v doc) (sent []doc, stop bool)
	// raw changes the bytes of other streams, read by read.
	raw func(b []byte) []byte
	// header changes the headers of streams.
	header func(h http.Header)
	// lateHeaders keeps the headers of a stream back until its first event.
	lateHeaders bool
	// plainErrors turns an ERROR at the beginning into the HTTP answer.
	plainErrors bool
}

// breaks starts a proxy before a server that breaks it, and returns how to
// reach it.
func (f *fault) breaks(t testing.TB, s *levelwiretest.Server) *rest.Config {
	t.Helper()
	behind, err := connect(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, behind) }))
	proxy.EnableHTTP2 = true
	proxy.Config.ErrorLog = nil
	proxy.StartTLS()
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		behind.close()
	})
	return &rest.Config{Host: proxy.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func isWatch(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Query().Get("watch") == "true" || strings.HasPrefix(r.URL.Path, "/api/v1/watch/"))
}

func (f *fault) serve(w http.ResponseWriter, r *http.Request, behind *testedServer) {
	onward := r.Clone(r.Context())
	if f.request != nil {
		query := onward.URL.Query()
		f.request(onward, query)
		onward.URL.RawQuery = query.Encode()
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, behind.base+onward.URL.RequestURI(), onward.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	request.Header = onward.Header
	response, err := behind.h2.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	switch {
	case !isWatch(r) || response.StatusCode != http.StatusOK:
		f.serveAnswer(w, r, response)
	case strings.HasPrefix(response.Header.Get("Content-Type"), "application/json"):
		f.serveEvents(w, r, response)
	default:
		f.serveRaw(w, response)
	}
}

func (f *fault) serveAnswer(w http.ResponseWriter, r *http.Request, response *http.Response) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return
	}
	a := &answer{code: response.StatusCode, header: w.Header(), body: body}
	if f.answer != nil {
		f.answer(r, a)
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(a.code)
	w.Write(a.body)
}

func (f *fault) serveEvents(w http.ResponseWriter, r *http.Request, response *http.Response) {
	if f.header != nil {
		f.header(w.Header())
	}
	if !f.lateHeaders && !f.plainErrors {
		w.(http.Flusher).Flush()
	}
	decoder := json.NewDecoder(bufio.NewReader(response.Body))
	for n := 0; ; n++ {
		var v doc
		if decoder.Decode(&v) != nil {
			return
		}
		if f.plainErrors && n == 0 && v["type"] == "ERROR" {
			w.WriteHeader(int(v["object"].(doc)["code"].(float64)))
			json.NewEncoder(w).Encode(v["object"])
			return
		}
		sent, stop := []doc{v}, false
		if f.event != nil {
			sent, stop = f.event(r, n, v)
		}
		for _, changed := range sent {
			json.NewEncoder(w).Encode(changed)
		}
		w.(http.Flusher).Flush()
		if stop {
			return
		}
	}
}

func (f *fault) serveRaw(w http.ResponseWriter, response *http.Response) {
	if f.header != nil {
		f.header(w.Header())
	}
	w.(http.Flusher).Flush()
	buffer := make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(buffer)
		b := buffer[:n]
		if f.raw != nil {
			b = f.raw(b)
		}
		w.Write(b)
		w.(http.Flusher).Flush()
		if err != nil {
			return
		}
	}
}

// edit changes an answer in JSON.
func (a *answer) edit(change func(body doc)) {
	var body doc
	if json.Unmarshal(bytes.TrimSpace(a.body), &body) != nil {
		return
	}
	change(body)
	a.body, _ = json.Marshal(body)
}

// at walks into nested objects; what is missing is empty.
func at(d doc, path ...string) doc {
	for _, name := range path {
		inner, ok := d[name].(doc)
		if !ok {
			return doc{}
		}
		d = inner
	}
	return d
}
