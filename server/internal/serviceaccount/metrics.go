package serviceaccount

import "github.com/prometheus/client_golang/prometheus"

// metrics are kube-apiserver's metrics of the tokens with which requests were made. Tokens that
// end when they say are in none of them.
type metrics struct {
	// legacy counts tokens of secrets, accepted or not; of these, manual, automatic and
	// invalidated those that the secret still holds.
	legacy, manual, automatic, invalidated prometheus.Counter
	// valid and stale count tokens that live on after their holder should have replaced them, by
	// whether that time has come.
	valid, stale prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "serviceaccount_" + name, Help: help})
	}
	return &metrics{
		legacy:      counter("legacy_tokens_total", "Requests with legacy tokens, those in secrets of the type kubernetes.io/service-account-token, accepted or not."),
		manual:      counter("legacy_manual_token_uses_total", "Requests with legacy tokens in secrets that users have made."),
		automatic:   counter("legacy_auto_token_uses_total", "Requests with legacy tokens in secrets that are listed in their account, as Kubernetes before 1.24 made them."),
		invalidated: counter("invalid_legacy_auto_token_uses_total", "Requests refused because the secret of their legacy token is marked as invalid."),
		valid:       counter("valid_tokens_total", "Requests with tokens that live on after their holder has to have replaced them, before that time."),
		stale:       counter("stale_tokens_total", "The same after that time: the holder does not read its token again."),
	}
}

// Collectors returns the metrics.
func (t *Tokens) Collectors() []prometheus.Collector {
	m := t.metrics
	return []prometheus.Collector{m.legacy, m.manual, m.automatic, m.invalidated, m.valid, m.stale}
}
