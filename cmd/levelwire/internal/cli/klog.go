package cli

import (
	"context"
	"log/slog"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// kubernetesLog receives what the Kubernetes libraries log, in every command of the process.
// klog must be told once, before anything logs: it guards its logger by no lock.
var kubernetesLog = divertKlog()

// follower is a handler that hands on to the one that was set last. It is safe to set while
// others log.
type follower struct {
	current *atomic.Pointer[slog.Handler]
	with    func(slog.Handler) slog.Handler // adds what With and WithGroup were given
}

func divertKlog() *atomic.Pointer[slog.Handler] {
	var current atomic.Pointer[slog.Handler]
	handler := follower{&current, func(h slog.Handler) slog.Handler { return h }}
	klog.SetSlogLogger(slog.New(handler).With("from", "klog"))
	return &current
}

// handler returns where records go now. Before a command has said so, that is the default.
func (f follower) handler() slog.Handler {
	if h := f.current.Load(); h != nil {
		return f.with(*h)
	}
	return f.with(slog.Default().Handler())
}

func (f follower) Enabled(ctx context.Context, level slog.Level) bool {
	return f.handler().Enabled(ctx, level)
}

func (f follower) Handle(ctx context.Context, record slog.Record) error {
	return f.handler().Handle(ctx, record)
}

func (f follower) WithAttrs(attrs []slog.Attr) slog.Handler {
	return follower{f.current, func(h slog.Handler) slog.Handler { return f.with(h).WithAttrs(attrs) }}
}

func (f follower) WithGroup(name string) slog.Handler {
	return follower{f.current, func(h slog.Handler) slog.Handler { return f.with(h).WithGroup(name) }}
}
