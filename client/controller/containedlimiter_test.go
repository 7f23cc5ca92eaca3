package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type panickingLimiter struct{}

func (panickingLimiter) When(Key) time.Duration { panic("limiter") }
func (panickingLimiter) Forget(Key)             { panic("limiter") }
func (panickingLimiter) Requeues(Key) int       { panic("limiter") }

// A RateLimiter that panics does not end the process: a key that has failed is tried again.
func TestRateLimitersThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var log bytes.Buffer
		calls := 0
		c, err := New(func(context.Context, Key) (Result, error) {
			if calls++; calls < 4 {
				return Result{}, errors.New("not yet")
			}
			return Result{}, nil
		}, Options{Name: "widgets", RateLimiter: panickingLimiter{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		c.Add(key)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Failures != 3 || s.Successes != 1 || s.Queue.Panics != 7 {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(log.String(), "panicked: limiter") || !strings.Contains(log.String(), "controller=widgets") {
			t.Errorf("logged %s", log.String())
		}
	})
}
