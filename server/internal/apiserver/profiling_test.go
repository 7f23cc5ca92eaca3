package apiserver

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestProfiling(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.Profiling, s.config.RequestTimeout = true, time.Minute })
	if r := c.get("/debug/pprof/"); r.code != http.StatusOK || !strings.Contains(string(r.body), "heap?debug=1\n") {
		t.Errorf("index: %d %s", r.code, r.body)
	}
	gzipped := []byte{0x1f, 0x8b}
	for _, path := range []string{"/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/pprof/profile?seconds=0.01"} {
		if r := c.get(path); r.code != http.StatusOK || !bytes.HasPrefix(r.body, gzipped) {
			t.Errorf("%s: %d, %d bytes", path, r.code, len(r.body))
		}
	}
	if r := c.get("/debug/pprof/goroutine?debug=1"); !strings.HasPrefix(string(r.body), "goroutine profile:") {
		t.Errorf("goroutines as text: %d %.100s", r.code, r.body)
	}
	for _, seconds := range []string{"-1", "much", "60", "NaN"} {
		if r := c.get("/debug/pprof/trace?seconds=" + seconds); r.code != http.StatusBadRequest || !strings.Contains(r.status(t).Message, "seconds="+seconds) {
			t.Errorf("seconds=%s: %d %s", seconds, r.code, r.body)
		}
	}
	if r := c.get("/debug/pprof/nonsense"); r.code != http.StatusNotFound {
		t.Errorf("a profile that there is not: %d", r.code)
	}
}

func TestOneProfileAtATime(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.Profiling = true })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := c.open(ctx, c.client, http.MethodGet, "/debug/pprof/trace?seconds=30", "")
	defer first.Body.Close()
	// The header of a trace is written when it has begun.
	if _, err := first.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	r := c.get("/debug/pprof/trace?seconds=1")
	if r.code != http.StatusConflict || !strings.Contains(r.status(t).Message, "another profile") {
		t.Errorf("a second one: %d %s", r.code, r.body)
	}
}

func TestProfilingIsOffByDefault(t *testing.T) {
	c := newCluster(t)
	if r := c.get("/debug/pprof/heap"); r.code != http.StatusNotFound {
		t.Errorf("%d", r.code)
	}
}
