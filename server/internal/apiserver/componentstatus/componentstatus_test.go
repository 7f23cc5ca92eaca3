package componentstatus

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// serve starts a component that answers like that, until the test ends.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	return s.URL + "/healthz"
}

func expect(t *testing.T, got corev1.ComponentCondition, status corev1.ConditionStatus, message, failure string) {
	t.Helper()
	if want := (corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: status, Message: message, Error: failure}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		code    int
		body    string
		status  corev1.ConditionStatus
		message string
	}{
		"healthy":      {200, "ok", corev1.ConditionTrue, "ok"},
		"another code": {202, "", corev1.ConditionTrue, ""},
		"unhealthy":    {500, "[-]leader failed", corev1.ConditionFalse, "HTTP probe failed with statuscode: 500"},
		"forbidden":    {403, "who are you?", corev1.ConditionFalse, "HTTP probe failed with statuscode: 403"},
		"a redirect without a location": {302, "away", corev1.ConditionUnknown,
			"Probe terminated redirects, Response body: away"},
		"a long answer":             {200, strings.Repeat("x", maxBody+1), corev1.ConditionTrue, strings.Repeat("x", maxBody)},
		"an answer that is no text": {200, "\xff", corev1.ConditionTrue, "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/healthz" || r.Header.Get("Authorization") != "" {
					t.Errorf("asked %s %s with %v", r.Method, r.URL, r.Header)
				}
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			})
			expect(t, HTTPS(url)(t.Context()), test.status, test.message, "")
		})
	}
}

// TestRedirects are followed on one host.
func TestRedirects(t *testing.T) {
	var asked atomic.Int64
	other := strings.Replace(serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }), "127.0.0.1", "localhost", 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			http.Redirect(w, r, "/livez", http.StatusFound)
		case "/livez":
			w.Header().Set("Location", other)
			w.WriteHeader(http.StatusFound)
			_, _ = w.Write([]byte("ask there"))
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	})
	expect(t, HTTPS(url)(t.Context()), corev1.ConditionUnknown, "Probe terminated redirects, Response body: ask there", "")
	if n := asked.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
	loop := strings.Replace(url, "/healthz", "/loop", 1)
	expect(t, HTTPS(loop)(t.Context()), corev1.ConditionFalse, `Get "/loop": stopped after 10 redirects`, "")
}

func TestNobodyAnswers(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	s.Close()
	expect(t, HTTPS(s.URL+"/healthz")(t.Context()), corev1.ConditionFalse,
		`Get "`+s.URL+`/healthz": dial tcp `+s.Listener.Addr().String()+`: connect: connection refused`, "")
	expect(t, HTTPS("https://127.0.0.1:port/")(t.Context()), corev1.ConditionUnknown, "",
		`failed to construct probe request: parse "https://127.0.0.1:port/": invalid port ":port" after host`)
}

// TestTheRequestEnds: a component that does not answer is not waited for any more.
func TestTheRequestEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		end()
		<-r.Context().Done()
	})
	expect(t, HTTPS(url)(ctx), corev1.ConditionFalse, `Get "`+url+`": context canceled`, "")
}

func TestAnswersThatBreakOff(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("ok"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	expect(t, HTTPS(url)(t.Context()), corev1.ConditionUnknown, "", "unexpected EOF")
}

func TestFunc(t *testing.T) {
	expect(t, Func(func(context.Context) error { return nil })(t.Context()), corev1.ConditionTrue, "ok", "")
	expect(t, Func(func(context.Context) error { return errors.New("it is full") })(t.Context()), corev1.ConditionFalse, "", "it is full")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		silent := Func(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		expect(t, silent(t.Context()), corev1.ConditionFalse, "", "context deadline exceeded")
		if took := time.Since(began); took != timeout {
			t.Errorf("it was waited for %v", took)
		}
	})
}

// TestComponents: all are asked at the same time, and come in the order of their names.
func TestComponents(t *testing.T) {
	var waiting atomic.Int64
	all := make(chan struct{})
	check := Func(func(ctx context.Context) error {
		if waiting.Add(1) == 3 {
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	components := Components{"scheduler": check, "controller-manager": check, "etcd-0": check}
	var names []string
	for _, status := range components.List(t.Context()) {
		names = append(names, status.Name)
		expect(t, status.Conditions[0], corev1.ConditionTrue, "ok", "")
	}
	if got := strings.Join(names, " "); got != "controller-manager etcd-0 scheduler" {
		t.Errorf("listed are %s", got)
	}
	if status, ok := components.Get(t.Context(), "scheduler"); !ok || status.Name != "scheduler" || len(status.Conditions) != 1 {
		t.Errorf("the scheduler is %v, %v", status, ok)
	}
	if status, ok := components.Get(t.Context(), "etcd-1"); ok {
		t.Errorf("of no component: %v", status)
	}
}
