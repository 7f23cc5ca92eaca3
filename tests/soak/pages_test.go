package soak

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
)

// page is what something between a client and the server answers in its place.
type page struct {
	code              int
	contentType, body string
	half              bool // of the requests, chosen at random, reach the server
	discovery         bool // discovery is answered so, too
}

// pages are the answers of proxies, load balancers and servers that start. None of
// them says that there are no objects.
var pages = []page{
	{404, "text/html", "<html><head><title>404 Not Found</title></head><body>nginx</body></html>", false, true},
	{404, "text/html", "<html><body>no such host</body></html>", true, true},
	{404, "text/plain; charset=utf-8", "404 page not found\n", false, true}, // as kube-apiserver
	{404, "text/plain; charset=utf-8", "404 page not found\n", false, false},
	{404, "application/json", notFound, false, false},
	{404, "application/json", notFound, false, true},
	{410, "text/html", "<html><body>gone</body></html>", false, true},
	{200, "text/html", "<html><body>log in</body></html>", true, true},
	{503, "text/html", "<html><body>try later</body></html>", false, true},
}

const notFound = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`

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
	if shown == nil || discovery && !shown.discovery || shown.half && rand.IntN(2) == 0 {
		return t.base.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: shown.code, Status: http.StatusText(shown.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {shown.contentType}}, ContentLength: int64(len(shown.body)), Body: io.NopCloser(strings.NewReader(shown.body)),
	}, nil
}
