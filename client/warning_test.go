package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// warningServer warns in each answer: with the same text, and with a new one.
func warningServer() *recorder {
	return &recorder{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "v1beta1 is deprecated"`)
		w.Header().Add("Warning", fmt.Sprintf(`299 - "unknown field %d"`, n))
		w.Header().Add("Warning", `not a warning`)
		answerJSON(w, http.StatusOK, `{"metadata":{"name":"a"}}`)
	}}
}

func TestWarningsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	client, _ := serve(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, warningServer())
	const requests = maxLoggedWarnings + 10
	for range requests {
		if err := get(client, t); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(log.String(), "v1beta1 is deprecated"); got != 1 {
		t.Errorf("logged %d times", got)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != maxLoggedWarnings {
		t.Errorf("logged %d texts", got)
	}
}

type warningHandler []string

func (h *warningHandler) HandleWarningHeader(code int, _, text string) {
	*h = append(*h, fmt.Sprint(code, " ", text))
}

func TestWarningHandlerOfTheConfig(t *testing.T) {
	client, _ := serve(t, Options{}, warningServer())
	var handler warningHandler
	client.warnings = newWarnings(&rest.Config{WarningHandler: &handler}, nil)
	if err := get(client, t); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(handler, ", "); got != "299 v1beta1 is deprecated, 299 unknown field 1" {
		t.Errorf("got %s", got)
	}
}

// panicking is each function of the program that a request calls.
type panicking struct{}

func (panicking) HandleWarningHeader(int, string, string) { panic("warning") }
func (panicking) AttemptDone(AttemptInfo)                 { panic("attempt") }
func (panicking) RequestDone(RequestInfo)                 { panic("request") }
func (panicking) Wait(context.Context) error              { panic("limiter") }

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("round tripper") }

// Functions of the program that panic do not end the process, nor what the request is for.
func TestFunctionsOfARequestThatPanic(t *testing.T) {
	var log bytes.Buffer
	opts := Options{Observer: panicking{}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	client, _ := serve(t, opts, warningServer())
	client.warnings = newWarnings(&rest.Config{WarningHandler: panicking{}}, nil)
	if err := get(client, t); err != nil {
		t.Fatal(err)
	}
	if got := client.Stats().Panics; got != 4 { // two warnings, an attempt and a request
		t.Errorf("%d panics are counted", got)
	}
	if !strings.Contains(log.String(), "WarningHandler panicked: warning") || !strings.Contains(log.String(), "warning_test.go") {
		t.Errorf("logged %s", log.String())
	}
	client.opts.RateLimiter = panicking{}
	if err := get(client, t); !errors.Is(err, errLimiterPanicked) {
		t.Errorf("got %v", err)
	}
	client.opts.RateLimiter = nil
	if err := get(client, t); err != nil {
		t.Error(err)
	}
}

// So do functions that open connections, which are called on goroutines of net/http, and those of the transport.
func TestFunctionsOfTheTransportThatPanic(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { panic("dial") }
	wrap := func(http.RoundTripper) http.RoundTripper { return panicking{} }
	for name, test := range map[string]struct {
		config rest.Config
		opts   Options
		want   error
	}{
		"Options.Dial":              {rest.Config{}, Options{Dial: dial}, errDialPanicked},
		"rest.Config.Dial":          {rest.Config{Dial: dial}, Options{}, errDialPanicked},
		"rest.Config.Proxy":         {rest.Config{Proxy: func(*http.Request) (*url.URL, error) { panic("proxy") }}, Options{}, errTransportPanicked},
		"Options.WrapTransport":     {rest.Config{}, Options{WrapTransport: wrap}, errTransportPanicked},
		"rest.Config.WrapTransport": {rest.Config{WrapTransport: wrap}, Options{}, errTransportPanicked},
	} {
		test.config.Host, test.opts.Logger = "http://server", slog.New(slog.DiscardHandler)
		c, err := New(&test.config, test.opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := get(c, t); !errors.Is(err, test.want) || c.Stats().Panics != 1 {
			t.Errorf("%s: %v, %d panics", name, err, c.Stats().Panics)
		}
	}
}
