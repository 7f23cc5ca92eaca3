// Package gunzip asks servers for compressed answers and decompresses them. It does
// what net/http does by itself, with a decoder that takes about half the processor
// time: in lists, net/http's took a third of the client's.
package gunzip

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// Transport returns a round tripper that sends requests through next, which must
// not decompress answers itself. A request that names an encoding or a range is
// left alone, and so is its answer.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Accept-Encoding") != "" || req.Header.Get("Range") != "" || req.Method == http.MethodHead {
		return t.next.RoundTrip(req)
	}
	asking := req.Clone(req.Context())
	asking.Header.Set("Accept-Encoding", "gzip")
	resp, err := t.next.RoundTrip(asking)
	if err != nil || !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return resp, err
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Body = &body{compressed: resp.Body}
	return resp, nil
}

// CloseIdleConnections closes those of the round tripper below, which http.Client
// looks for.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// body decompresses while it is read. The decoder is made for the first byte, so
// that an answer costs nothing if the client closes it without reading.
type body struct {
	compressed io.ReadCloser
	decoder    *decoder // of the pool, until the end has been read
	err        error    // sticky
}

// decoder is what one answer needs.
type decoder struct {
	in  *bufio.Reader
	out gzip.Reader
}

const bufferBytes = 32 << 10

var decoders = sync.Pool{New: func() any { return &decoder{in: bufio.NewReaderSize(nil, bufferBytes)} }}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.decoder == nil {
		b.decoder = decoders.Get().(*decoder)
		b.decoder.in.Reset(b.compressed)
		if b.err = b.decoder.out.Reset(b.decoder.in); b.err != nil {
			b.release()
			return 0, b.err
		}
	}
	n, err := b.decoder.out.Read(p)
	if b.err = err; err != nil {
		b.release()
	}
	return n, err
}

// release gives the decoder back. It is called by the goroutine that reads, as Close
// may be called while another one still does.
func (b *body) release() {
	b.decoder.in.Reset(nil)
	decoders.Put(b.decoder)
	b.decoder = nil
}

// Close implements io.Closer. Read fails afterwards as it does on the connection.
func (b *body) Close() error { return b.compressed.Close() }
