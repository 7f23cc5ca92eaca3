package apiserver

import (
	"testing"
	"time"
)

// TestUnknownResourcesWaitUntilAllAreKnown: a server that has started does not say that
// a resource does not exist before it has read all definitions, to clients that know
// the resource from before.
func TestUnknownResourcesWaitUntilAllAreKnown(t *testing.T) {
	complete := make(chan struct{})
	c := newCluster(t, func(s *setup) {
		s.config.Complete, s.config.CatchUpTimeout = complete, time.Minute
	})
	if got := c.get("/api/v1/pods"); got.code != 200 {
		t.Fatalf("a resource that is there: %d", got.code)
	}
	if got := c.get("/version"); got.code != 200 {
		t.Fatalf("/version: %d", got.code)
	}
	answers := make(chan reply)
	paths := []string{"/apis/example.com/v1/things", "/apis/example.com/v1/namespaces/a/things/b", "/apis", "/apis/example.com/v1", "/openapi/v3"}
	for _, path := range paths {
		go func() { answers <- c.get(path) }()
	}
	select {
	case got := <-answers:
		t.Fatalf("%d %s before all is known", got.code, got.body)
	case <-time.After(100 * time.Millisecond):
	}
	close(complete)
	codes := map[int]int{}
	for range paths {
		got := <-answers
		codes[got.code]++
	}
	if codes[200] != 2 || codes[404] != 3 {
		t.Errorf("answers by code: %v, want two documents, and 404 for what does not exist", codes)
	}
}

// TestUnknownResourcesAreRefusedWhileTheServerStarts for too long: with 503 and when to
// come back.
func TestUnknownResourcesAreRefusedWhileTheServerStarts(t *testing.T) {
	c := newCluster(t, func(s *setup) {
		s.config.Complete, s.config.CatchUpTimeout = make(chan struct{}), time.Millisecond
	})
	for _, path := range []string{"/apis/example.com/v1/things", "/apis"} {
		got := c.get(path)
		if got.code != 503 || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d with Retry-After %q: %s", path, got.code, got.header.Get("Retry-After"), got.body)
		}
	}
}
