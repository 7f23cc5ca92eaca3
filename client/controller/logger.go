package controller

import (
	"context"
	"log/slog"
	"sync"
)

type loggerKey struct{}

// keyLogger is the logger of one call. Most calls log nothing, so the
// attributes are added by the first use.
type keyLogger struct {
	base *slog.Logger
	key  any
	once sync.Once
	with *slog.Logger
}

func (l *keyLogger) logger() *slog.Logger {
	l.once.Do(func() { l.with = l.base.With("key", keyText(l.key)) })
	return l.with
}

// Logger returns the logger of a call of a ReconcileFunc, from its context:
// Options.Logger with the controller's name and the key as attributes. With
// any other context it returns slog.Default().
func Logger(ctx context.Context) *slog.Logger {
	if l, ok := ctx.Value(loggerKey{}).(*keyLogger); ok {
		return l.logger()
	}
	return slog.Default()
}

func withLogger(ctx context.Context, base *slog.Logger, key any) context.Context {
	return context.WithValue(ctx, loggerKey{}, &keyLogger{base: base, key: key})
}
