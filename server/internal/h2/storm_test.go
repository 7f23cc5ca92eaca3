package h2

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/testseed"
)

// block is 4 bytes of checksum and what they are of.
func block(random *rand.Rand, n int) []byte {
	b := make([]byte, 4+n)
	for i := range b[4:] {
		b[4+i] = byte(random.Uint32())
	}
	binary.BigEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b
}

func intact(b []byte) bool {
	return len(b) >= 4 && binary.BigEndian.Uint32(b) == crc32.ChecksumIEEE(b[4:])
}

// TestStorm has many requests at once, on connections that are cut, by clients
// that cancel, read slowly, or do neither. Whatever arrives must be right, what
// ends must be complete, and afterwards nothing may be left.
func TestStorm(t *testing.T) {
	seed := testseed.New(t)
	var running, asked atomic.Int64
	f := start(t, counted(&running, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if len(body) > 0 && !intact(body) {
			t.Error("a request's body is not what was sent")
		}
		random := seed.Rand(1000 + int(asked.Add(1)))
		answer := block(random, random.IntN(300_000))
		for len(answer) > 0 {
			n := min(len(answer), 1+random.IntN(40_000))
			if _, err := w.Write(answer[:n]); err != nil {
				return
			}
			if answer = answer[n:]; random.IntN(3) == 0 {
				w.(http.Flusher).Flush()
			}
		}
	}))
	proxy, err := faultnet.New(f.addr)
	must(t, err)
	t.Cleanup(func() { proxy.Close() })
	urls := []string{f.url("/"), "https://" + proxy.Addr() + "/"}

	var all sync.WaitGroup
	var complete atomic.Int64
	clients := 0
	for _, client := range f.clients() {
		for range 6 {
			clients++
			random := seed.Rand(clients)
			all.Go(func() {
				for range 12 {
					if stormRequest(t, random, client, urls[random.IntN(2)]) && complete.Add(1)%8 == 0 {
						proxy.Cut()
					}
				}
			})
		}
	}
	all.Wait()
	if complete.Load() < 20 {
		t.Errorf("only %d requests were answered", complete.Load())
	}
	for _, client := range f.clients() {
		client.CloseIdleConnections()
	}
	must(t, f.http.Close())
	f.conns.Wait()
	if n := running.Load(); n != 0 {
		t.Errorf("%d handlers are still running", n)
	}
}

// stormRequest says whether the answer came to its end.
func stormRequest(t *testing.T, random *rand.Rand, client *http.Client, url string) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var body io.Reader
	if random.IntN(2) == 0 {
		body = bytes.NewReader(block(random, random.IntN(500_000)))
	}
	req, err := http.NewRequestWithContext(ctx, "POST", url, body)
	must(t, err)
	resp, err := client.Do(req)
	if err != nil {
		return false // the connection was cut
	}
	defer resp.Body.Close()
	switch random.IntN(4) {
	case 0: // leave in the middle
		_, _ = io.CopyN(io.Discard, resp.Body, int64(random.IntN(100_000)))
		return false
	case 1:
		time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, cancel)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return false
	}
	if !intact(got) {
		t.Errorf("an answer of %d bytes ended in order and is not what was written", len(got))
	}
	return true
}
