package authenticationconfig

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/cert"
)

const (
	// fetchTimeout bounds a request to an issuer.
	fetchTimeout = 10 * time.Second
	// maxDocument bounds an issuer's answer: a set of keys has a few kilobytes.
	maxDocument = 1 << 20
	// fetchInterval is how often the same document is fetched at most. Each token with an
	// unknown key asks for the keys, and clients can make up as many as they like.
	fetchInterval = time.Second
	// maxDocuments bounds the documents that are kept for that.
	maxDocuments = 16
)

// newHTTPClient returns a client of an issuer, which trusts the authorities in PEM, or the
// machine's if there are none.
func newHTTPClient(authorities string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		roots, err := cert.NewPoolFromBytes([]byte(authorities))
		if err != nil {
			return nil, fmt.Errorf("certificateAuthority: %w", err)
		}
		config.RootCAs = roots
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 1})
	return &http.Client{Transport: &fetcher{next: transport, documents: map[string]document{}}, Timeout: fetchTimeout}, nil
}

// fetcher fetches the documents of an issuer, none of them more often than every
// fetchInterval. It is safe for concurrent use.
type fetcher struct {
	next *http.Transport

	mu        sync.Mutex
	documents map[string]document // by URL
}

// document is an answer, or why there was none.
type document struct {
	at     time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

// RoundTrip implements http.RoundTripper.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	kept := r.Method == http.MethodGet && r.Header.Get("Authorization") == ""
	if kept {
		f.mu.Lock()
		known, ok := f.documents[url]
		f.mu.Unlock()
		if ok && time.Since(known.at) < fetchInterval {
			return known.response(r)
		}
	}
	d := f.fetch(r)
	if kept {
		f.mu.Lock()
		if len(f.documents) >= maxDocuments {
			clear(f.documents)
		}
		f.documents[url] = d
		f.mu.Unlock()
	}
	return d.response(r)
}

func (f *fetcher) fetch(r *http.Request) document {
	response, err := f.next.RoundTrip(r)
	if err != nil {
		return document{at: time.Now(), err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("the answer of %s has more than %d bytes", r.URL, maxDocument)
	}
	return document{at: time.Now(), status: response.StatusCode, header: response.Header, body: body, err: err}
}

func (d document) response(r *http.Request) (*http.Response, error) {
	if d.err != nil {
		return nil, d.err
	}
	return &http.Response{
		Status: http.StatusText(d.status), StatusCode: d.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header.Clone(), Body: io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)), Request: r,
	}, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (f *fetcher) CloseIdleConnections() { f.next.CloseIdleConnections() }
