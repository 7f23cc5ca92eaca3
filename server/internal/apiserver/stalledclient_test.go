package apiserver

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/testwait"
)

// dialHTTP1 connects without saying anything.
func (c *cluster) dialHTTP1() *tls.Conn {
	c.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(c.authority)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}})
	must(c.t, err)
	c.t.Cleanup(func() { conn.Close() })
	must(c.t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	return conn
}

// TestAnswersThatAreNotRead has a client that asks for a short answer again and
// again, and reads none of them.
func TestAnswersThatAreNotRead(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.WriteTimeout = 200 * time.Millisecond })
	pod := testPod("a", "big", nil, "")
	pod.Annotations = map[string]string{"fill": strings.Repeat("x", 20<<10)}
	c.put(pod)
	conn := c.dialHTTP1()
	var err error
	for err == nil { // until nothing is read of it any more
		_, err = fmt.Fprintf(conn, "GET /api/v1/namespaces/a/pods/big HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", testToken)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server waits for ever for the client to read")
	}
}

// TestBodiesThatDoNotCome has clients that announce a body and never send it, to
// handlers that do not want one, or not from them. Neither may they hold a slot.
func TestBodiesThatDoNotCome(t *testing.T) {
	c := newCluster(t, func(s *setup) {
		s.config.RequestTimeout, s.config.MaxReadsInFlight = 500*time.Millisecond, 1
	})
	for i := range 100 {
		c.put(testPod("a", fmt.Sprint("pod-", i), nil, ""))
	}
	for name, head := range map[string]string{
		"a list":             "GET /api/v1/pods HTTP/1.1\r\nAuthorization: Bearer " + testToken,
		"unauthenticated":    "POST /api/v1/namespaces/a/pods HTTP/1.1",
		"nothing of it":      "POST /api/v1/namespaces/a/pods HTTP/1.1\r\nAuthorization: Bearer " + testToken,
		"of a refused media": "PATCH /api/v1/namespaces/a/pods/pod-1 HTTP/1.1\r\nContent-Type: a/b\r\nAuthorization: Bearer " + testToken,
		"a watch":            "GET /api/v1/pods?watch=1&resourceVersion=0 HTTP/1.1\r\nAuthorization: Bearer " + testToken,
	} {
		t.Run(name, func(t *testing.T) {
			conn := c.dialHTTP1()
			_, err := io.WriteString(conn, head+"\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
			must(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("the server waits for ever for the client to send")
				}
				return // the connection ended: that is an answer, too
			}
			resp.Body.Close()
			if !resp.Close {
				t.Errorf("the connection is kept after %s", resp.Status)
			}
		})
	}
	// The slot of the last answer is released a moment after it has been read.
	testwait.Stable(t, "no request holds the slot", func() (any, bool) { seen := c.get("/api/v1/pods?limit=1").code; return seen, seen == http.StatusOK })
}

// TestWatchesWithABody are as long as others.
func TestWatchesWithABody(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.RequestTimeout = time.Second })
	conn := c.dialHTTP1()
	began := time.Now()
	_, err := io.WriteString(conn, "GET /api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=3 HTTP/1.1\r\n"+ //passes: the watch ends by it
		"Authorization: Bearer "+testToken+"\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if after := time.Since(began); err != nil || after < 3*time.Second {
		t.Errorf("ended after %v: %v", after, err)
	}
}
