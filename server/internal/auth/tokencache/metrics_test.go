package tokencache

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetrics: requests, and the questions that they cause, are counted.
func TestMetrics(t *testing.T) {
	metrics := NewMetrics()
	c := New(&authenticatorFunc{do: byName}, Options{Success: time.Hour, Failure: time.Hour, Metrics: metrics})
	for _, token := range []string{"jane", "jane", "jane", "bad", "bad", "down"} {
		_, _ = c.AuthenticateToken(t.Context(), token, nil)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.Collectors()...)
	const want = `
# HELP authentication_token_cache_active_fetch_count Questions that are being asked (in_flight), and requests that wait for one of them (blocked).
# TYPE authentication_token_cache_active_fetch_count gauge
authentication_token_cache_active_fetch_count{status="blocked"} 0
authentication_token_cache_active_fetch_count{status="in_flight"} 0
# HELP authentication_token_cache_fetch_total Questions to an issuer or a webhook, by whether the token was accepted (ok) or not (error).
# TYPE authentication_token_cache_fetch_total counter
authentication_token_cache_fetch_total{status="error"} 2
authentication_token_cache_fetch_total{status="ok"} 1
# HELP authentication_token_cache_request_total Requests with tokens that an issuer or a webhook judges, by whether the judgement was known (hit) or not (miss).
# TYPE authentication_token_cache_request_total counter
authentication_token_cache_request_total{status="hit"} 3
authentication_token_cache_request_total{status="miss"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "authentication_token_cache_request_total", "authentication_token_cache_fetch_total", "authentication_token_cache_active_fetch_count"); err != nil {
		t.Error(err)
	}
}
