package tokencache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// authenticatorFunc is an authenticator that counts how often it is asked.
type authenticatorFunc struct {
	asked atomic.Int64
	do    func(ctx context.Context, token string) (auth.Identity, error)
}

func (a *authenticatorFunc) AuthenticateToken(ctx context.Context, token string, _ []string) (auth.Identity, error) {
	a.asked.Add(1)
	return a.do(ctx, token)
}

var errRefused = errors.New("refused")

// byName accepts every token but "bad", as the user of its name.
func byName(_ context.Context, token string) (auth.Identity, error) {
	switch token {
	case "bad":
		return auth.Identity{}, errRefused
	case "down":
		return auth.Identity{}, fmt.Errorf("%w: it is down", ErrUnavailable)
	case "panic":
		panic("a bug")
	}
	return auth.Identity{User: auth.User{Name: token}}, nil
}

func TestRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &authenticatorFunc{do: byName}
		c := New(next, Options{Success: 10 * time.Second, Failure: 5 * time.Second, End: func(token string) (time.Time, bool) {
			return time.Now().Add(3 * time.Second), token == "short"
		}})
		asks := func(want int64, token string, audiences ...string) {
			t.Helper()
			before := next.asked.Load()
			identity, err := c.AuthenticateToken(t.Context(), token, audiences)
			if got := next.asked.Load() - before; got != want || err == nil && identity.User.Name != token {
				t.Errorf("%s: asked %d times (%+v, %v), want %d", token, got, identity, err, want)
			}
		}
		for _, token := range []string{"good", "bad", "short"} {
			asks(1, token)
			asks(0, token)
		}
		asks(1, "good", "another audience")
		for _, token := range []string{"down", "panic"} { // these say nothing about the token
			asks(1, token)
			asks(1, token)
		}
		time.Sleep(4 * time.Second)
		asks(1, "short")
		asks(0, "bad")
		time.Sleep(2 * time.Second)
		asks(1, "bad")
		asks(0, "good")
		time.Sleep(5 * time.Second)
		asks(1, "good")
	})
}

// TestHanging: an authenticator that hangs is asked once for a token, a bounded number of
// times at once, and for a bounded time; a request that ends does not wait.
func TestHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &authenticatorFunc{do: func(ctx context.Context, _ string) (auth.Identity, error) {
			<-ctx.Done()
			return auth.Identity{}, ctx.Err()
		}}
		c := New(next, Options{Success: time.Minute, Failure: time.Minute, Questions: 3})
		start := time.Now()
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				if _, err := c.AuthenticateToken(t.Context(), strconv.Itoa(i%10), nil); !errors.Is(err, ErrUnavailable) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if got := next.asked.Load(); got != 3 {
			t.Errorf("asked %d times at once", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.AuthenticateToken(ctx, "0", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		group.Wait()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestEndedRequestsLeaveNothing: requests with different tokens that end while they wait
// leave no goroutine behind, and the token of the next request is checked in its turn.
func TestEndedRequestsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		next := &authenticatorFunc{do: func(ctx context.Context, token string) (auth.Identity, error) {
			<-hangs
			return byName(ctx, token)
		}}
		c := New(next, Options{Success: time.Minute, Questions: 3})
		ctx, cancel := context.WithCancel(t.Context())
		before := runtime.NumGoroutine()
		var group sync.WaitGroup
		for i := range 500 {
			group.Go(func() {
				if _, err := c.AuthenticateToken(ctx, strconv.Itoa(i), nil); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		group.Wait()
		synctest.Wait()
		if left := runtime.NumGoroutine() - before; left > 50 { // three ask; goroutines that are just ending count, too
			t.Errorf("%d goroutines are left", left)
		}
		if _, err := c.AuthenticateToken(ctx, "ended", nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		group.Go(func() {
			if identity, err := c.AuthenticateToken(t.Context(), "good", nil); err != nil || identity.User.Name != "good" {
				t.Errorf("%+v, %v", identity, err)
			}
		})
		synctest.Wait()
		close(hangs)
		group.Wait()
		synctest.Wait()
		if got := next.asked.Load(); got != 4 || len(c.questions) != 0 || len(c.asking) != 0 || c.waiting != 0 {
			t.Errorf("asked %d times; %d questions, %d slots taken, %d wait", got, len(c.questions), len(c.asking), c.waiting)
		}
	})
}

// TestTooManyWait: a token beyond those that may wait is refused at once, and requests
// with a token that is being asked about, or waits for that, share its answer.
func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		next := &authenticatorFunc{do: func(ctx context.Context, token string) (auth.Identity, error) {
			<-hangs
			return byName(ctx, token)
		}}
		c := New(next, Options{Questions: 1, Waiting: 2})
		start := time.Now()
		var group sync.WaitGroup
		for _, token := range []string{"asked", "first", "second", "asked", "first", "second"} {
			group.Go(func() {
				if identity, err := c.AuthenticateToken(t.Context(), token, nil); err != nil || identity.User.Name != token {
					t.Errorf("%+v, %v", identity, err)
				}
			})
			synctest.Wait()
		}
		if _, err := c.AuthenticateToken(t.Context(), "third", nil); !errors.Is(err, ErrUnavailable) || time.Since(start) > 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		close(hangs)
		group.Wait()
		synctest.Wait()
		if got := next.asked.Load(); got != 3 || len(c.questions) != 0 || len(c.asking) != 0 || c.waiting != 0 {
			t.Errorf("asked %d times; %d questions, %d slots taken, %d wait", got, len(c.questions), len(c.asking), c.waiting)
		}
	})
}

// TestBounded: a flood of different tokens is not remembered, and does not drive out what
// was accepted.
func TestBounded(t *testing.T) {
	next := &authenticatorFunc{do: func(_ context.Context, token string) (auth.Identity, error) {
		if token == "good" {
			return auth.Identity{}, nil
		}
		return auth.Identity{}, errRefused
	}}
	c := New(next, Options{Success: time.Hour, Failure: time.Hour, Entries: 100})
	for i := -1; i < 10_000; i++ {
		token := strconv.Itoa(i)
		if i < 0 {
			token = "good"
		}
		_, _ = c.AuthenticateToken(t.Context(), token, nil)
	}
	if got := len(c.refused.Keys()); got > 100 {
		t.Errorf("%d are remembered", got)
	}
	before := next.asked.Load()
	if _, err := c.AuthenticateToken(t.Context(), "good", nil); err != nil || next.asked.Load() != before {
		t.Errorf("%v, asked again: %v", err, next.asked.Load() != before)
	}
}
