package client

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A thousand clients that an overloaded server has sent away at the same moment come
// back spread over time, and all of them are served.
func TestRefusedClientsComeBackSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, perSecond = 1000, 150
		start := time.Now()
		var mu sync.Mutex
		arrived := map[time.Duration]int{} // within each tenth of a second
		server := rate.NewLimiter(perSecond, perSecond)
		client, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			arrived[time.Since(start).Truncate(100*time.Millisecond)]++
			mu.Unlock()
			if !server.Allow() {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			answerJSON(w, 200, `{"metadata":{"name":"a"}}`)
		}))
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				if err := get(client, t); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		most, total := 0, 0
		for at, n := range arrived {
			total += n
			if at > 0 {
				most = max(most, n)
			}
		}
		if most > clients/5 || total > 5*clients {
			t.Errorf("up to %d requests in a tenth of a second, %d in all", most, total)
		}
		if got := client.Stats(); got.RetryWait < clients/2*time.Second || got.LimiterWait != 0 {
			t.Errorf("stats: %+v", got)
		}
	})
}

func TestRetryWaitIsBounded(t *testing.T) {
	opts := Options{Retry: RetryOptions{MaxWait: 20 * time.Second}}.withDefaults().Retry
	for attempts := 1; attempts < 100; attempts++ {
		for _, after := range []time.Duration{0, time.Second, 19 * time.Second, time.Hour} {
			least := min(max(after, time.Second), opts.MaxWait)
			if got := opts.wait(after, attempts); got < least || got > least+opts.MaxWait {
				t.Errorf("attempt %d, %v: %v", attempts, after, got)
			}
		}
	}
}

// A request that the server wants to be repeated in a day is repeated in a minute at most, and
// the log says that it waits, and for what.
func TestLongWaitsAreLogged(t *testing.T) {
	for after, logged := range map[string]bool{"86400": true, "99999999999": true, "31": true, "30": false, "-5": false, "99999999999999999999999": false, "tomorrow": false} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			client, _ := serve(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, &recorder{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					w.Header().Set("Retry-After", after)
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				answerJSON(w, 200, `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}`)
			}})
			start := time.Now()
			if _, err := For[*corev1.Pod](client).List(t.Context(), metav1.ListOptions{}); err != nil || time.Since(start) > time.Minute {
				t.Errorf("Retry-After %s: %v after %v", after, err, time.Since(start))
			}
			text := log.String()
			if got := strings.Contains(text, "level=WARN") && strings.Contains(text, "list pods") && strings.Contains(text, "retryAfter="); got != logged {
				t.Errorf("Retry-After %s: the log says %q", after, text)
			}
		})
	}
}

// Clients that share a limiter are limited together. Watches are not, repeated
// attempts are.
func TestSharedRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := rate.NewLimiter(2, 4)
		rec := &recorder{}
		one, _ := serve(t, Options{RateLimiter: limiter}, rec)
		two, _ := serve(t, Options{RateLimiter: limiter}, rec)
		start := time.Now()
		for range 7 {
			if err := errors.Join(get(one, t), create(two, t)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("14 requests took %v", took)
		}
		if got := one.Stats().LimiterWait + two.Stats().LimiterWait; got != 5*time.Second {
			t.Errorf("stats: %v", got)
		}
		start = time.Now()
		for range 10 {
			if watch, err := For[*corev1.Pod](one).Watch(t.Context(), metav1.ListOptions{}); err != nil {
				t.Error(err)
			} else {
				watch.Close()
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("10 watches took %v", took)
		}
		ctx, cancel := contextTimeout(t, 100*time.Millisecond)
		defer cancel()
		sent := len(rec.all)
		if _, err := For[*corev1.Pod](one).Get(ctx, "a", metav1.GetOptions{}); err == nil || len(rec.all) != sent {
			t.Errorf("a request that would wait too long: %v", err)
		}
	})
}

// The observer hears of each attempt when its answer arrives, and of each request.
func TestObserverHearsOfEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observed{}
		client, n := serve(t, Options{Observer: o, RateLimiter: rate.NewLimiter(1, 1)}, &recorder{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			time.Sleep(time.Second)
			answerJSON(w, 200, `{"kind":"Pod","metadata":{"name":"a"}}`)
		}})
		if err := create(client, t); err != nil {
			t.Fatal(err)
		}
		if len(o.attempts) != 2 || len(o.requests) != 1 {
			t.Fatalf("got %+v", o)
		}
		first, second, all := o.attempts[0], o.attempts[1], o.requests[0]
		if first.Verb != "create" || first.Method != "POST" || first.Host != "server" || first.Resource.Resource != "pods" ||
			first.Number != 1 || first.Code != 429 || first.Sent == 0 || first.Duration != 0 {
			t.Errorf("first attempt: %+v", first)
		}
		if second.Number != 2 || second.Code != 200 || second.Duration != time.Second || second.Err != nil {
			t.Errorf("second attempt: %+v", second)
		}
		if all.Verb != "create" || all.Method != "POST" || all.Host != "server" || all.Code != 200 || all.Attempts != 2 ||
			all.Sent != 2*first.Sent || all.Received == 0 || all.Duration < 2*time.Second {
			t.Errorf("request: %+v", all)
		}
		if stats := client.Stats(); stats.BytesSent != all.Sent || stats.BytesReceived != all.Received || stats.LimiterWait != all.LimiterWait {
			t.Errorf("stats %+v do not agree with %+v", stats, all)
		}
		_ = n.Close()
		n.cut()
		if err := get(client, t); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("without a server: %v", err)
		}
		if last := o.attempts[len(o.attempts)-1]; last.Code != 0 || last.Err == nil || o.requests[1].Code != 0 || last.LimiterWait != o.requests[1].LimiterWait {
			t.Errorf("without a server: %+v, %+v", last, o.requests[1])
		}
	})
}

type observed struct {
	attempts []AttemptInfo
	requests []RequestInfo
}

func (o *observed) AttemptDone(i AttemptInfo) { o.attempts = append(o.attempts, i) }
func (o *observed) RequestDone(i RequestInfo) { o.requests = append(o.requests, i) }
