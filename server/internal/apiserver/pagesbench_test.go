package apiserver

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// pageClient reads lists over TLS and HTTP/2 and looks only for the continue token, so that
// it costs little.
type pageClient struct {
	http *http.Client
	url  string
	buf  []byte
}

// read returns the continue token of a list, and how long the list was.
func (c *pageClient) read(b *testing.B, query string) (token string, size int64) {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, c.url+"/api/v1/pods?"+query, nil)
	must(b, err)
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Accept-Encoding", "identity")
	response, err := c.http.Do(r)
	must(b, err)
	defer response.Body.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(response.Body, head)
	must(b, err)
	if _, after, found := bytes.Cut(head[:n], []byte(`"continue":"`)); found {
		token = string(after[:bytes.IndexByte(after, '"')])
	}
	rest, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{response.Body}, c.buf)
	must(b, err)
	return token, rest + int64(n)
}

// BenchmarkListPages reads all pods in pages, over the network, and in one answer: the same
// bytes, and as many requests more.
func BenchmarkListPages(b *testing.B) {
	const pods = 50_000
	c := newCluster(b)
	fill(b, c, pods)
	client := &pageClient{url: c.url, buf: make([]byte, 1<<20), http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, //nolint:gosec // the test's own server
	}}}
	for _, limit := range []int{0, 500} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			before, rounds := cpuTime(b), 0
			for b.Loop() {
				var total int64
				for token, more := "", true; more; more = token != "" {
					query := fmt.Sprintf("limit=%d&continue=%s", limit, url.QueryEscape(token))
					var size int64
					token, size = client.read(b, query)
					total += size
				}
				b.SetBytes(total)
				rounds++
			}
			b.ReportMetric((cpuTime(b)-before).Seconds()/float64(rounds), "cpu-s/op")
		})
	}
}
