package health

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// counted is a table of resources that is empty, and counts who looks at it.
type counted struct{ looks atomic.Int32 }

func (c *counted) All() []*resource.Resource {
	c.looks.Add(1)
	return nil
}

// TestCachesAreLookedAtOnceASecond, if all of them are filled.
func TestCachesAreLookedAtOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table counted
		h := New(Config{Resources: &table, Stopping: make(chan struct{}), Logger: slog.New(slog.DiscardHandler)})
		for range 3 {
			for range 100 {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil)); w.Code != 200 {
					t.Errorf("got %d", w.Code)
				}
			}
			time.Sleep(resultAge)
		}
		if looks := table.looks.Load(); looks != 3 {
			t.Errorf("300 requests in three seconds look at the caches %d times", looks)
		}
	})
}

// none is a table of resources that is empty.
type none struct{}

func (none) All() []*resource.Resource { return nil }

// TestSharedChecksRunOnceASecond, however many ask: health needs no credentials.
func TestSharedChecksRunOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var fails atomic.Bool
		h := New(Config{Resources: none{}, Stopping: make(chan struct{}), Logger: slog.New(slog.DiscardHandler), Checks: []Check{{
			Name: "store", Shared: true, Check: func(ctx context.Context) error {
				calls.Add(1)
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
				if fails.Load() {
					return errors.New("the disk is full")
				}
				return nil
			},
		}}})
		ask := func(ctx context.Context, path string) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx))
			return w.Code
		}
		gone, cancel := context.WithCancel(t.Context())
		codes := make(chan int)
		go func() { codes <- ask(gone, "/readyz") }()
		synctest.Wait()
		cancel() // this client leaves, and must not make the others' result
		for range 100 {
			go func() { codes <- ask(t.Context(), "/readyz/store") }()
		}
		for range 101 {
			if code := <-codes; code != 200 {
				t.Errorf("got %d", code)
			}
		}
		fails.Store(true)
		if code := ask(t.Context(), "/readyz"); code != 200 || calls.Load() != 1 {
			t.Errorf("got %d after %d calls", code, calls.Load())
		}
		time.Sleep(resultAge)
		for range 10 {
			if code := ask(t.Context(), "/readyz?verbose"); code != 500 {
				t.Errorf("a second later: %d", code)
			}
		}
		if calls.Load() != 2 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}
