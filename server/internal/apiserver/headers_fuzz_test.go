package apiserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzHeaders sends two header fields with any values, where the server looks at them or
// at any name, with requests of each kind. The answer is never a 500, and without the
// token it is a 401.
func FuzzHeaders(f *testing.F) {
	names := []string{
		"Accept", "Accept-Encoding", "Authorization", "Content-Encoding", "Content-Type", "Cookie", "Expect", "Host", "If-Match", "If-Modified-Since",
		"If-None-Match", "If-Range", "Impersonate-Extra-x%2fy", "Impersonate-Group", "Impersonate-Uid", "Impersonate-User", "Origin", "Range", "Te",
		"Traceparent", "Upgrade", "User-Agent", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "X-Forwarded-For", "Audit-Id", "Baggage",
	}
	requests := []struct{ method, path, body string }{
		{"GET", "/api/v1/namespaces/default/pods", ""}, {"GET", "/api/v1/namespaces/default/pods/none", ""}, {"GET", "/openapi/v3/api/v1", ""},
		{"GET", "/apis", ""}, {"GET", "/api/v1/pods?watch=true&timeoutSeconds=-1", ""}, {"POST", "/api/v1/namespaces/default/pods", `{"metadata":{}}`},
		{"PATCH", "/api/v1/namespaces/default/pods/none", `{}`}, {"DELETE", "/api/v1/namespaces/default/pods/none", ""}, {"GET", "/metrics", ""},
	}
	for i, value := range []string{"*/*;q=0.5,application/json;as=Table;g=meta.k8s.io;v=v1", "gzip;q=0,*", "Bearer x", "gzip", "application/apply-patch+yaml;x=\"", "a=b"} {
		f.Add(uint8(i), uint8(i), value, "", "")
	}
	f.Add(uint8(0), uint8(15), "jane", "Impersonate-Group", "system:masters")
	f.Add(uint8(2), uint8(10), `W/"x","`, "If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")
	f.Add(uint8(4), uint8(20), "websocket", "Connection", "upgrade")
	f.Add(uint8(3), uint8(2), "", "Authorization", "bearer "+testToken)
	f.Add(uint8(0), uint8(18), "gzip", "", "") // Go's client tried it for ever when it was reset
	c := newCluster(f)
	seed(c)
	f.Fuzz(func(t *testing.T, which, known uint8, value, name, another string) {
		r := requests[int(which)%len(requests)]
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, r.method, c.url+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Authorization": {"Bearer " + testToken}}
		request.Header[names[int(known)%len(names)]] = []string{value}
		if name != "" {
			request.Header[name] = append(request.Header[name], another)
		}
		answer, err := c.http2.Do(request)
		if ctx.Err() != nil {
			t.Fatalf("%s %s with %q is not answered", r.method, r.path, request.Header)
		}
		if err != nil {
			return // the client refuses to send it
		}
		defer func() { _ = answer.Body.Close() }()
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s %s with %q: %d %s", r.method, r.path, request.Header, answer.StatusCode, body)
		}
		knows := false
		for name, values := range request.Header {
			knows = knows || strings.EqualFold(name, "authorization") && strings.Contains(strings.Join(values, " "), testToken)
		}
		if !knows && answer.StatusCode < http.StatusBadRequest {
			t.Errorf("%s %s with %q: %d without the token", r.method, r.path, request.Header, answer.StatusCode)
		}
	})
}
