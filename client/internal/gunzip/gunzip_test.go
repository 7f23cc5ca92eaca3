package gunzip_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/client/internal/gunzip"
)

// server answers with content, compressed if the request allows it and plain is
// false; cut leaves out the end.
type server struct {
	content string
	plain   bool
	cut     int
	asked   string // the Accept-Encoding of the last request
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = req.Header.Get("Accept-Encoding")
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req}
	data := []byte(s.content)
	if !s.plain && strings.Contains(s.asked, "gzip") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(data)
		_ = z.Close()
		data = b.Bytes()[:b.Len()-s.cut]
		resp.Header.Set("Content-Encoding", "gzip")
		resp.Header.Set("Content-Length", "1")
	}
	resp.ContentLength = int64(len(data))
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

func TestTransport(t *testing.T) {
	long := strings.Repeat("a list of pods ", 10_000)
	for _, test := range []struct {
		name    string
		server  server
		header  string
		asked   string
		want    string
		wantErr error
	}{
		{name: "compressed", server: server{content: long}, asked: "gzip", want: long},
		{name: "empty", server: server{}, asked: "gzip"},
		{name: "plain answer", server: server{content: long, plain: true}, asked: "gzip", want: long},
		{name: "the caller wants it as it is", server: server{content: "x"}, header: "identity", asked: "identity", want: "x"},
		{name: "cut", server: server{content: long, cut: 9}, asked: "gzip", wantErr: io.ErrUnexpectedEOF},
		{name: "cut in the checksum", server: server{content: "x", cut: 1}, asked: "gzip", wantErr: io.ErrUnexpectedEOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 2 { // the second time with the decoder of the first
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", nil)
				if err != nil {
					t.Fatal(err)
				}
				if test.header != "" {
					req.Header.Set("Accept-Encoding", test.header)
				}
				resp, err := gunzip.Transport(&test.server).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				if err != test.wantErr || err == nil && string(got) != test.want { //nolint:errorlint // exactly that error
					t.Errorf("%d bytes, %v; want %d, %v", len(got), err, len(test.want), test.wantErr)
				}
				if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
					t.Errorf("reading on: %d, %v", n, err)
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
				if test.server.asked != test.asked || req.Header.Get("Accept-Encoding") != test.header {
					t.Errorf("asked for %q, and the caller's request says %q", test.server.asked, req.Header.Get("Accept-Encoding"))
				}
				if resp.Uncompressed && (resp.ContentLength != -1 || len(resp.Header) != 0) {
					t.Errorf("the size of what was compressed is left: %d, %v", resp.ContentLength, resp.Header)
				}
			}
		})
	}
}

// TestNotGzip: a server that lies gets an error, not a panic.
func TestNotGzip(t *testing.T) {
	rt := gunzip.Transport(lying{})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", nil)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("no error")
	}
	_ = resp.Body.Close()
}

type lying struct{}

func (lying) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}
