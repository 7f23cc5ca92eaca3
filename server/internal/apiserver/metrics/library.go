package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// ofLibraries are the metrics that packages of k8s.io/apiserver keep themselves, in a registry of
// the process: servers of one process all show the sum. The other metrics of these packages are
// counted here, a server at a time, under the same names.
var ofLibraries = []string{
	// plugin/pkg/authenticator/token/oidc
	"apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
	"apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
	// pkg/storage/value/encrypt/envelope, with version 2 of KMS
	"apiserver_envelope_encryption_dek_source_cache_size",
	"apiserver_envelope_encryption_invalid_key_id_from_status_total",
	"apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
	"apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
	"apiserver_envelope_encryption_key_id_hash_total",
	"apiserver_envelope_encryption_kms_operations_latency_seconds",
}

// gatherOfLibraries is a prometheus.GathererFunc of them.
func gatherOfLibraries() ([]*dto.MetricFamily, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
		return !slices.Contains(ofLibraries, f.GetName())
	}), err
}

// gatherer gathers all metrics.
func (m *Metrics) gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{m.registry, prometheus.GathererFunc(gatherOfLibraries)}
}
