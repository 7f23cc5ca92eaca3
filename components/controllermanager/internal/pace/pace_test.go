package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestHalfOfTheTime: of many calls two are under way at a time, and pauses are as long as they.
func TestHalfOfTheTime(t *testing.T) {
	for _, tt := range []struct{ call, pause time.Duration }{
		{2 * time.Millisecond, 2 * time.Millisecond},
		{time.Minute, longestPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, began, failed := New(2), time.Now(), errors.New("refused")
			ended := make(chan error, 10)
			for range cap(ended) {
				go func() {
					ended <- p.Do(t.Context(), func() error {
						time.Sleep(tt.call)
						return failed
					})
				}()
			}
			for range cap(ended) {
				if err := <-ended; !errors.Is(err, failed) {
					t.Errorf("the call's error became %v", err)
				}
			}
			if took, want := time.Since(began), 5*tt.call+4*tt.pause; took != want {
				t.Errorf("10 calls of %v took %v, want %v", tt.call, took, want)
			}
			time.Sleep(tt.pause)
		})
	}
}

func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		go func() { _ = p.Do(t.Context(), func() error { time.Sleep(time.Hour); return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Do(ctx, func() error { t.Error("it was called"); return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that of the context", err)
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestPanicsGiveBackThePlace: the controller recovers and goes on.
func TestPanicsGiveBackThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		func() {
			defer func() { _ = recover() }()
			_ = p.Do(t.Context(), func() error { panic("out of order") })
		}()
		if err := p.Do(t.Context(), func() error { return nil }); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}
