package audit

import (
	"io"
	"os"
	"path/filepath"

	"gopkg.in/natefinch/lumberjack.v2"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/plugin/pkg/audit/log"
	"k8s.io/apiserver/plugin/pkg/audit/truncate"
)

// newLog returns the backend that writes a file or standard output.
func newLog(c *Config) (backend, error) {
	out, closeFile, err := openLog(c)
	if err != nil {
		return backend{}, err
	}
	lines := log.NewBackend(out, c.LogFormat, groupVersion)
	each := func(batch []*auditinternal.Event) map[string]int {
		lost := 0
		for _, event := range batch {
			if !lines.ProcessEvents(event) {
				lost++
			}
		}
		return map[string]int{pluginLog: lost}
	}
	if c.LogDelivery.Truncate {
		each = truncated(&c.LogDelivery, each)
	}
	return backend{plugin: pluginLog, send: each, close: closeFile}, nil
}

// openLog opens the file, so that one that cannot be written is an error of the start.
func openLog(c *Config) (io.Writer, func() error, error) {
	if c.LogPath == "-" {
		return os.Stdout, nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(c.LogPath), 0o700); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(c.LogPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	rotated := &lumberjack.Logger{
		Filename: c.LogPath, MaxAge: c.LogMaxAge, MaxBackups: c.LogMaxBackups, MaxSize: c.LogMaxSize, Compress: c.LogCompress,
	}
	return rotated, rotated.Close, nil
}

// truncated returns a send that leaves the objects out of events that are too large, and
// divides batches that are.
func truncated(d *Delivery, send func([]*auditinternal.Event) map[string]int) func([]*auditinternal.Event) map[string]int {
	limits := truncate.Config{MaxEventSize: d.MaxEventBytes, MaxBatchSize: d.MaxBatchBytes}
	return func(batch []*auditinternal.Event) map[string]int {
		inner := &sender{send: send, lost: map[string]int{}}
		truncate.NewBackend(inner, limits, groupVersion).ProcessEvents(batch...)
		inner.lost[pluginTruncate] += len(batch) - inner.passed
		return inner.lost
	}
}

// sender is a send function as a backend of k8s.io/apiserver.
type sender struct {
	send   func([]*auditinternal.Event) map[string]int
	passed int
	lost   map[string]int
}

var _ audit.Backend = (*sender)(nil)

// ProcessEvents implements audit.Sink.
func (s *sender) ProcessEvents(events ...*auditinternal.Event) bool {
	s.passed += len(events)
	for plugin, n := range s.send(events) {
		s.lost[plugin] += n
	}
	return true
}

// Run implements audit.Backend.
func (s *sender) Run(<-chan struct{}) error { return nil }

// Shutdown implements audit.Backend.
func (s *sender) Shutdown() {}

// String implements audit.Backend.
func (s *sender) String() string { return "sender" }
