package maintenance

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
	"github.com/levelwire/levelwire/storage"
)

// maintained is a store with a snapshot.
type maintained struct {
	storage.Maintainer
	data io.Reader

	mu     sync.Mutex
	closed time.Time
}

func (m *maintained) Snapshot(context.Context) (io.ReadCloser, error) { return m, nil }
func (m *maintained) Read(p []byte) (int, error)                      { return m.data.Read(p) }
func (m *maintained) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = time.Now()
	return nil
}

func (m *maintained) closedAt() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// logBuffer is a buffer that one goroutine writes and another reads.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// zeros are read until pause, and then, once, nothing comes for a while.
type zeros struct{ pause time.Duration }

func (z *zeros) Read(p []byte) (int, error) {
	time.Sleep(z.pause)
	z.pause = 0
	return len(p), nil
}

// TestSnapshotsAreReadSteadily: a snapshot keeps freed pages of the database from being
// used again. So one that its client hardly reads is ended; one that the storage is slow
// to send is not.
func TestSnapshotsAreReadSteadily(t *testing.T) {
	const size = 100 << 20
	for _, tt := range []struct {
		name     string
		rate     int           // bytes that the client reads in a second
		stop     int           // bytes after which it reads no more
		pause    time.Duration // of the storage
		complete bool
	}{
		{"a slow client", 100 << 10, size, 0, false},
		{"a client that hardly reads", 1, size, 0, false},
		{"a client that stops in the middle", 10 << 20, size / 2, 0, false},
		{"a client of a slow network", 1 << 20, size, 0, true},
		{"slow storage", 1 << 20, size, 5 * time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &maintained{data: io.LimitReader(&zeros{tt.pause}, size)}
				var log logBuffer
				h := &Handler{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				pipe := faultnet.NewPipe()
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.Serve(w, r, auth.User{Name: "admin", Groups: []string{auth.Masters}})
				})}
				served := make(chan error, 1)
				go func() { served <- server.Serve(listen.LimitWrites(pipe, 30*time.Second)) }()
				client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					return pipe.Dial(ctx, network, address)
				}}}
				resp, err := client.Get("http://x" + Path + "snapshot")
				if err != nil {
					t.Fatal(err)
				}
				got, began := 0, time.Now()
				for err == nil && got < size && store.closedAt().IsZero() {
					if got < tt.stop {
						var n int
						n, err = io.ReadFull(resp.Body, make([]byte, tt.rate))
						got += n
					}
					time.Sleep(time.Second)
				}
				if tt.complete {
					if rest, e := io.Copy(io.Discard, resp.Body); err != nil || e != nil || rest != 0 || got != size {
						t.Errorf("%d of %d bytes, then %d, %v, %v", got, size, rest, err, e)
					}
				} else if took := store.closedAt().Sub(began); got >= size || took > 2*time.Minute || !strings.Contains(log.String(), "512 kB a second") {
					t.Errorf("ended after %v and %d bytes, the log says %q", took, got, log.String())
				}
				resp.Body.Close()
				client.CloseIdleConnections()
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				<-served
			})
		})
	}
}
