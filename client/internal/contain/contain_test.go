package contain

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestCall(t *testing.T) {
	called := false
	if err := Call("it", func() { called = true }); err != nil || !called {
		t.Errorf("called %v, %v", called, err)
	}
	err := Call("it", func() { panic("why") })
	if err == nil || !strings.HasPrefix(err.Error(), "it panicked: why\n") || !strings.Contains(err.Error(), "TestCall") {
		t.Errorf("got %v", err)
	}
}

func TestCounterLogsSome(t *testing.T) {
	var log bytes.Buffer
	var c Counter
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for n := range 123 {
		c.Call(logger, "it", func() {
			if n >= 3 {
				panic("why")
			}
		})
	}
	if got := strings.Count(log.String(), "it panicked: why"); c.Count() != 120 || got != 3 {
		t.Errorf("counted %d, logged %d", c.Count(), got)
	}
}
