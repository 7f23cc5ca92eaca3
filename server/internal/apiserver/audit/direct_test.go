package audit

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// TestModes: with a backend that hangs, a request waits in the blocking modes only.
func TestModes(t *testing.T) {
	for mode, waits := range map[string]bool{ModeBatch: false, ModeBlocking: true, ModeBlockingStrict: true} {
		synctest.Test(t, func(t *testing.T) {
			r, m := &recorder{hangs: make(chan struct{})}, newMetrics()
			a := newAuditor(m, sinkOf(r.backend(), mode, m))
			emitted := make(chan bool, 1)
			go func() { emitted <- a.emit(event(1, "")) }()
			synctest.Wait()
			if waiting := len(emitted) == 0; waiting != waits {
				t.Errorf("%s: the request waits: %v", mode, waiting)
			}
			close(r.hangs)
			if goOn := <-emitted; !goOn {
				t.Errorf("%s: a request is refused whose event was stored", mode)
			}
			a.Close(t.Context())
			if got := r.sent(); len(got) != 1 || got[0][0] != "1" {
				t.Errorf("%s: sent %v", mode, got)
			}
			if a.emit(event(2, "")) != (mode != ModeBlockingStrict) || len(r.sent()) != 1 {
				t.Errorf("%s: after Close", mode)
			}
		})
	}
}

// TestStrict: a request is refused if its event is lost, in the strict mode only, whatever
// the other backend does.
func TestStrict(t *testing.T) {
	for mode, goesOn := range map[string]bool{ModeBatch: true, ModeBlocking: true, ModeBlockingStrict: false} {
		m, good := newMetrics(), newRecorder()
		failing := backend{plugin: pluginLog, send: func(batch []*auditinternal.Event) map[string]int { return map[string]int{pluginLog: len(batch)} }}
		a := newAuditor(m, sinkOf(failing, mode, m), sinkOf(good.backend(), ModeBlocking, m))
		if got := a.emit(event(1, "")); got != goesOn {
			t.Errorf("%s: the request goes on: %v", mode, got)
		}
		a.Close(t.Context())
		if lost(m, pluginLog) != 1 || len(good.sent()) != 1 {
			t.Errorf("%s: %d lost, the other backend has got %v", mode, lost(m, pluginLog), good.sent())
		}
	}
}

// TestCloseWhileBlocked: Close does not wait for a backend that hangs, longer than it was
// told to.
func TestCloseWhileBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &recorder{hangs: make(chan struct{})}, newMetrics()
		a := newAuditor(m, sinkOf(r.backend(), ModeBlocking, m))
		go a.emit(event(1, ""))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		a.Close(ctx)
		if took := time.Since(begin); took != 5*time.Second+endGrace {
			t.Errorf("the close took %v", took)
		}
		close(r.hangs)
	})
}

func newAuditor(m *metrics, sinks ...sink) *Auditor {
	return &Auditor{metrics: m, cancel: func() {}, sinks: sinks}
}

func sinkOf(b backend, mode string, m *metrics) sink {
	return newSink(b, mode, limits{events: 100, bytes: 1 << 20, batch: 10, senders: 1}, m, slog.New(slog.DiscardHandler))
}
