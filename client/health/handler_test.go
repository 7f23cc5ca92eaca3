package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// Without a logger, the reasons of failures go to the program's default one.
func TestNilLoggerIsTheDefaultOne(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	get(t, NewHandler(Options{Ready: Checks{"cache": Func(func() error { return errors.New("too old") })}}), "/readyz")
	if !strings.Contains(log.String(), "too old") {
		t.Errorf("logged: %s", log.String())
	}
}

func TestHandler(t *testing.T) {
	broken := errors.New("secret reason")
	h := NewHandler(Options{
		Live:   Checks{"ping": Func(func() error { return nil })},
		Ready:  Checks{"cache": Func(func() error { return broken }), "ping": Func(func() error { return nil }), "bad": Func(func() error { panic("on purpose") }), "none": nil},
		Logger: slog.New(slog.DiscardHandler),
	})
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"/livez":                     {200, "ok"},
		"/healthz":                   {200, "ok"},
		"/livez?verbose":             {200, "[+]ping ok\nlivez check passed\n"},
		"/livez/ping":                {200, "ok"},
		"/livez/cache":               {404, "no such check\n"},
		"/readyz":                    {500, "[-]bad failed: reason withheld\n[-]cache failed: reason withheld\n[-]none failed: reason withheld\n[+]ping ok\nreadyz check failed\n"},
		"/readyz/cache":              {500, "[-]cache failed: reason withheld\n"},
		"/readyz/ping":               {200, "ok"},
		"/elsewhere":                 {404, "404 page not found\n"},
		"/livez?exclude=x":           {200, "ok"},
		"/livez?exclude=x&verbose=1": {200, "[+]ping ok\nwarn: there is no check \"x\" to exclude\nlivez check passed\n"},
		"/readyz?exclude=cache&exclude=bad&exclude=none": {200, "ok"},
	} {
		if code, body := get(t, h, path); code != want.code || body != want.body {
			t.Errorf("%s: %d %q, want %d %q", path, code, body, want.code, want.body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/readyz", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// The reason is logged when a check begins to fail, and not with each probe.
func TestReasonsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	err := errors.New("the view is old")
	h := NewHandler(Options{Ready: Checks{"cache": Func(func() error { return err })}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		get(t, h, "/readyz")
	}
	err = nil
	get(t, h, "/readyz")
	if got := strings.Count(log.String(), "the view is old"); got != 1 || strings.Count(log.String(), "\n") != 2 {
		t.Errorf("logged:\n%s", log.String())
	}
}

func TestClosedAndRunning(t *testing.T) {
	channel := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	closed, running := Closed(channel), Running(ctx)
	if closed(t.Context()) == nil || running(t.Context()) != nil {
		t.Errorf("before: %v, %v", closed(t.Context()), running(t.Context()))
	}
	close(channel)
	cancel()
	if closed(t.Context()) != nil || running(t.Context()) == nil {
		t.Errorf("after: %v, %v", closed(t.Context()), running(t.Context()))
	}
}
