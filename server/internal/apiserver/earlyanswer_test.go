package apiserver

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// earlyAnswers are requests that are answered before their bodies have been read.
var earlyAnswers = []struct {
	name, path, token, mediaType string
	code                         int
}{
	{"unauthenticated", "/api/v1/namespaces/a/pods", "wrong", "application/json", http.StatusUnauthorized},
	{"too large", "/api/v1/namespaces/a/pods", testToken, "application/json", http.StatusRequestEntityTooLarge},
	{"of a refused media type", "/api/v1/namespaces/a/pods", testToken, "a b c", http.StatusUnsupportedMediaType},
	{"not found", "/apis/no/v1/such", testToken, "application/json", http.StatusNotFound},
}

// TestEarlyAnswersOverHTTP1 has a client that reads nothing before it has written
// all of a body that does not fit into the buffers of the connection.
func TestEarlyAnswersOverHTTP1(t *testing.T) {
	c := newCluster(t)
	const size = 8 << 20
	for _, tt := range earlyAnswers {
		t.Run(tt.name, func(t *testing.T) {
			conn := c.dialHTTP1()
			_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
				tt.path, tt.token, tt.mediaType, size)
			must(t, err)
			if _, err := conn.Write(make([]byte, size)); err != nil {
				t.Fatalf("the body could not be written: %v", err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			must(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if got := (reply{resp.StatusCode, resp.Header, body}).status(t); err != nil || int(got.Code) != tt.code || !resp.Close {
				t.Errorf("%v: %+v, close %v", err, got, resp.Close)
			}
		})
	}
}

// TestCurlGetsEarlyAnswers over either version of HTTP.
func TestCurlGetsEarlyAnswers(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	c := newCluster(t)
	file := filepath.Join(t.TempDir(), "body")
	must(t, os.WriteFile(file, make([]byte, 5<<20), 0o600))
	for _, tt := range earlyAnswers {
		for _, protocol := range []string{"--http2", "--http1.1"} {
			for range 5 {
				out, err := exec.CommandContext(t.Context(), curl, "-sk", protocol, "--max-time", "60", "-w", " %{http_code}", "-X", "POST", "-H", "Expect:",
					"-H", "Authorization: Bearer "+tt.token, "-H", "Content-Type: "+tt.mediaType, "--data-binary", "@"+file, c.url+tt.path).CombinedOutput()
				if err != nil || !strings.HasSuffix(string(out), fmt.Sprint(" ", tt.code)) || !strings.Contains(string(out), `"Status"`) {
					t.Fatalf("%s: curl %s: %v: %.300q", tt.name, protocol, err, out)
				}
			}
		}
	}
}
