package controller

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
)

// BenchmarkCall is what the controller adds to a call that does nothing.
func BenchmarkCall(b *testing.B) {
	done := make(chan struct{})
	calls := 0
	c, err := New(func(context.Context, Key) (Result, error) {
		if calls++; calls == b.N {
			close(done)
		}
		return Result{}, nil
	}, Options{Name: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for n := range b.N {
		c.Add(Key{Namespace: "ns", Name: strconv.Itoa(n)})
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { ended <- c.Run(ctx) }()
	<-done
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
