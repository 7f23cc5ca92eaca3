package soak

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/levelwire/levelwire/tests/workload"
)

// page is what something between a client and the server answers in its place, or what a
// server with a fault answers.
type page struct {
	code              int
	contentType, body string
	header            map[string]string
	to                requests
	half              bool // of the requests, chosen at random, reach the server
	discovery         bool // discovery is answered so, too
}

// requests says which requests for config maps are answered by a page.
type requests int

const (
	all requests = iota
	watches
	lists
	laterPages // of lists
)

func (r requests) include(req *http.Request) bool {
	q := req.URL.Query()
	watch := q.Get("watch") == "true"
	switch r {
	case watches:
		return watch
	case lists:
		return !watch && req.Method == http.MethodGet
	case laterPages:
		return q.Get("continue") != ""
	default:
		return true
	}
}

// pages are the answers of proxies, load balancers and servers that start, and those of
// servers with faults. None of them says that there are no objects.
var pages = []page{
	{code: 404, contentType: "text/html", body: "<html><head><title>404 Not Found</title></head><body>nginx</body></html>", discovery: true},
	{code: 404, contentType: "text/html", body: "<html><body>no such host</body></html>", half: true, discovery: true},
	{code: 404, contentType: "text/plain; charset=utf-8", body: "404 page not found\n", discovery: true}, // as kube-apiserver
	{code: 404, contentType: "text/plain; charset=utf-8", body: "404 page not found\n"},
	{code: 404, contentType: "application/json", body: notFound},
	{code: 404, contentType: "application/json", body: notFound, discovery: true},
	{code: 410, contentType: "text/html", body: "<html><body>gone</body></html>", discovery: true},
	{code: 200, contentType: "text/html", body: "<html><body>log in</body></html>", half: true, discovery: true},
	{code: 503, contentType: "text/html", body: "<html><body>try later</body></html>", discovery: true},
}

// faults are the answers of servers with faults, and of redirects, each with what it is called.
var faults = map[string]page{
	"broken event":    {code: 200, contentType: "application/json", body: `{"type":"ADDED","object":{"metadata":{"resourceVersion":"999999999"}}}` + "\n", to: watches, half: true},
	"garbled event":   {code: 200, contentType: "application/json", body: `{"type":"MODIFIED","object":{"metadata":{"name":{}}}}` + "\n", to: watches, half: true},
	"oversized event": {code: 200, contentType: "application/json", body: `{"type":"MODIFIED","object":{"metadata":{"name":"` + strings.Repeat("x", 2*workload.MaxFrameBytes) + `"}}}` + "\n", to: watches, half: true},
	"stream error":    {code: 200, contentType: "application/json", body: `{"type":"ERROR","object":` + internalError + "}\n", to: watches, half: true},
	"server error":    {code: 500, contentType: "application/json", body: internalError, to: watches, half: true},
	"no list":         {code: 200, contentType: "application/json", body: `{}`, to: lists, half: true},
	"kind alone":      {code: 200, contentType: "application/json", body: `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{}}`, to: lists, half: true},
	"no page":         {code: 200, contentType: "application/json", body: `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`, to: laterPages, half: true},
	"come tomorrow": {code: 429, contentType: "application/json", header: map[string]string{"Retry-After": "86400"},
		body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":86400}}`, half: true},
	"redirect": {code: 307, contentType: "text/html", header: map[string]string{"Location": "https://elsewhere.invalid/api/v1/configmaps"}, body: "moved", half: true},
}

const (
	notFound      = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	internalError = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"on purpose"}`
)

// proxyPages is a proxy in the way of clients. While a page is shown, new requests
// may get it in place of the server's answer.
type proxyPages struct{ shown atomic.Pointer[page] }

// wrap is client.Options.WrapTransport.
func (p *proxyPages) wrap(base http.RoundTripper) http.RoundTripper { return pageTripper{p, base} }

type pageTripper struct {
	pages *proxyPages
	base  http.RoundTripper
}

func (t pageTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	shown := t.pages.shown.Load()
	discovery := !strings.Contains(req.URL.Path, "/configmaps")
	if shown == nil || discovery && !shown.discovery || !discovery && !shown.to.include(req) || shown.half && rand.IntN(2) == 0 {
		return t.base.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	header := http.Header{"Content-Type": {shown.contentType}}
	for name, value := range shown.header {
		header.Set(name, value)
	}
	return &http.Response{
		StatusCode: shown.code, Status: http.StatusText(shown.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: header, ContentLength: int64(len(shown.body)), Body: io.NopCloser(strings.NewReader(shown.body)),
	}, nil
}
