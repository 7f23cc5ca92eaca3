package apiserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"testing"

	"golang.org/x/net/http2"
)

// TestHeaderListsOfUnknownClients: four connections send as many header lists as they
// may, with wrong tokens, and let no answer be sent. They hold little memory, and other
// clients come in.
func TestHeaderListsOfUnknownClients(t *testing.T) {
	c := newCluster(t)
	heap := func() int64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var fields []string
	for i := range 1500 {
		fields = append(fields, fmt.Sprintf("x%d", i), "")
	}
	before := heap()
	for range 4 {
		a := c.attack("wrong", http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		go func() {
			for {
				if _, err := a.framer.ReadFrame(); err != nil {
					return
				}
			}
		}()
		a.send("GET", "/api/v1/pods", true, fields...)
		block := a.block.Bytes()
		for range 999 { // or until the server has had enough
			id := a.next
			a.next += 2
			if a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: true}) != nil {
				break
			}
		}
	}
	if grown := heap() - before; grown > 256<<20 {
		t.Errorf("they hold %d MB", grown>>20)
	}
	for range 20 {
		_, client := clients(c.authority)
		client2, _ := clients(c.authority)
		for _, client := range []*http.Client{client, client2} {
			resp := c.open(t.Context(), client, http.MethodGet, "/api/v1/pods", "")
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("a client with a token: %s", resp.Status)
			}
			client.CloseIdleConnections()
		}
	}
}

// TestConnectionsEndAfterA401 over either version of HTTP.
func TestConnectionsEndAfterA401(t *testing.T) {
	c := newCluster(t)
	conn := c.dialHTTP1()
	_, err := io.WriteString(conn, "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n")
	must(t, err)
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if got := (reply{resp.StatusCode, resp.Header, body}).status(t); got.Code != http.StatusUnauthorized {
		t.Errorf("%+v", got)
	}
	if _, err := reader.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}

	a := c.attack("wrong")
	a.send("GET", "/api/v1/pods", true)
	if codes := a.answered(1); codes["401"] != 1 {
		t.Errorf("%v", codes)
	}
	for {
		if _, err := a.framer.ReadFrame(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection goes on")
		} else if err != nil {
			break
		}
	}
	a = c.attack(testToken)
	a.send("GET", "/api/v1/pods", true)
	a.answered(1)
	a.token = "wrong" // a proxy may have many users
	a.send("GET", "/api/v1/pods", true)
	a.token = testToken
	a.send("GET", "/api/v1/pods", true)
	if codes := a.answered(2); codes["200"] != 1 || codes["401"] != 1 {
		t.Errorf("%v", codes)
	}
}
