package etcdlog

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

// Log forwards etcd's log to slog. etcd's information becomes debugging output,
// and so do the warnings of its start: they are about settings that an embedded
// member has on purpose.
type Log struct {
	logger *zap.Logger
	slog   *slog.Logger
	quiet  atomic.Bool // during the start

	mu   sync.Mutex
	last string // the last error, to explain a panic

	failing sync.Once
	failed  chan struct{} // see Failed
}

// New returns a log for a member that starts. Fatal entries do not end the
// process, see OnWrite.
func New(logger *slog.Logger) *Log {
	z := &Log{slog: logger.With("component", "etcd"), failed: make(chan struct{})}
	z.quiet.Store(true)
	z.logger = zap.New(&core{log: z}, zap.WithFatalHook(z), zap.WithPanicHook(z))
	return z
}

// OnWrite implements zapcore.CheckWriteHook for entries after which etcd cannot go on:
// its log or its database could not be written. During the start it panics, which
// Embed recovers. Later it reports the failure and never returns: nothing that
// etcd would do next may happen, and above all no acknowledgement. Only the end of the
// process ends that goroutine.
func (z *Log) OnWrite(entry *zapcore.CheckedEntry, _ []zapcore.Field) {
	if z.quiet.Load() {
		panic(entry.Message)
	}
	z.failing.Do(func() { close(z.failed) })
	haltFailed()
}

func haltFailed() { select {} }

// Zap returns what etcd writes to.
func (z *Log) Zap() *zap.Logger { return z.logger }

// Failed is closed after a fatal error of a member that has started.
func (z *Log) Failed() <-chan struct{} { return z.failed }

// Started ends the time in which warnings are debugging output.
func (z *Log) Started() { z.quiet.Store(false) }

// Describe returns the error entry that preceded a panic: it says more than the
// panic.
func (z *Log) Describe(panicked any) string {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.last != "" {
		return z.last
	}
	return fmt.Sprint(panicked)
}

// harmless are warnings of etcd about a new database: it reads the raft term a
// moment before the first one is stored, and again four seconds later; and an early
// stop cuts off the write of the cluster's version, which the next start repeats.
var harmless = map[string]bool{
	"Failed to detect schema version":  true,
	"failed to update cluster version": true,
	"failed to update storage version": true,
}

// level is the level at which an entry of etcd is shown.
func (z *Log) level(entry zapcore.Level, message string) slog.Level {
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

// core implements zapcore.Core.
type core struct {
	log    *Log
	fields []zapcore.Field
}

// Enabled implements zapcore.LevelEnabler.
func (c *core) Enabled(level zapcore.Level) bool {
	return level >= zapcore.ErrorLevel || c.log.slog.Enabled(context.Background(), c.log.level(level, ""))
}

// With implements zapcore.Core.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{log: c.log, fields: slices.Concat(c.fields, fields)}
}

// Check implements zapcore.Core.
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
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
func (c *core) Sync() error { return nil }
