package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLog forwards etcd's log to slog. etcd's information becomes debugging output,
// and so do the warnings of its start: they are about settings that an embedded
// member has on purpose.
type zapLog struct {
	logger *zap.Logger
	slog   *slog.Logger
	quiet  atomic.Bool // during the start

	mu   sync.Mutex
	last string // the last error, to explain a panic
}

// newZap returns a log for a member that starts. Fatal entries panic instead of
// ending the process.
func newZap(logger *slog.Logger) *zapLog {
	z := &zapLog{slog: logger.With("component", "etcd")}
	z.quiet.Store(true)
	z.logger = zap.New(&zapCore{log: z}, zap.WithFatalHook(zapcore.WriteThenPanic))
	return z
}

// started ends the time in which warnings are debugging output.
func (z *zapLog) started() { z.quiet.Store(false) }

// describe returns the error entry that preceded a panic: it says more than the
// panic.
func (z *zapLog) describe(panicked any) string {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.last != "" {
		return z.last
	}
	return fmt.Sprint(panicked)
}

// harmless are warnings of etcd about a new database: it reads the raft term a
// moment before the first one is stored, and again four seconds later.
var harmless = map[string]bool{
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
}

// level is the level at which an entry of etcd is shown.
func (z *zapLog) level(entry zapcore.Level, message string) slog.Level {
	switch {
	case harmless[message]:
		return slog.LevelDebug
	case entry >= zapcore.ErrorLevel:
		return slog.LevelError
	case entry == zapcore.WarnLevel && !z.quiet.Load():
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// zapCore implements zapcore.Core.
type zapCore struct {
	log    *zapLog
	fields []zapcore.Field
}

// Enabled implements zapcore.LevelEnabler.
func (c *zapCore) Enabled(level zapcore.Level) bool {
	return level >= zapcore.ErrorLevel || c.log.slog.Enabled(context.Background(), c.log.level(level, ""))
}

// With implements zapcore.Core.
func (c *zapCore) With(fields []zapcore.Field) zapcore.Core {
	return &zapCore{log: c.log, fields: slices.Concat(c.fields, fields)}
}

// Check implements zapcore.Core.
func (c *zapCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *zapCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, field := range slices.Concat(c.fields, fields) {
		field.AddTo(values)
	}
	attrs := make([]slog.Attr, 0, len(values.Fields))
	for _, name := range slices.Sorted(maps.Keys(values.Fields)) {
		attrs = append(attrs, slog.Any(name, values.Fields[name]))
	}
	if entry.Level >= zapcore.ErrorLevel {
		c.log.mu.Lock()
		c.log.last = entry.Message
		if cause, ok := values.Fields["error"]; ok {
			c.log.last = fmt.Sprintf("%s: %v", entry.Message, cause)
		}
		c.log.mu.Unlock()
	}
	level := c.log.level(entry.Level, entry.Message)
	c.log.slog.LogAttrs(context.Background(), level, entry.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (c *zapCore) Sync() error { return nil }
