package server

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/storage/encryption"
)

// encryptionCollector is kube-apiserver's metric of the uses of keys, which shows whether values
// are read that were written with a former key, and whether some cannot be read.
type encryptionCollector struct {
	store *encryption.Store
	desc  *prometheus.Desc
}

func newEncryptionCollector(store *encryption.Store) prometheus.Collector {
	return &encryptionCollector{store, prometheus.NewDesc("apiserver_storage_transformation_operations_total",
		"Values that were encrypted or decrypted, by the provider's prefix and, in a series of its own, by the name of its key.",
		[]string{"resource", "transformation_type", "transformer_prefix", "status"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *encryptionCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector.
func (c *encryptionCollector) Collect(metrics chan<- prometheus.Metric) {
	sums := map[[4]string]uint64{}
	c.store.Operations(func(o encryption.Operation, n uint64) {
		kind := "from_storage"
		if o.ToStorage {
			kind = "to_storage"
		}
		for _, prefix := range prefixesOf(o.Prefix) {
			sums[[4]string{o.Resource.String(), kind, prefix, o.Status}] += n
		}
	})
	for labels, n := range sums {
		metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), labels[:]...)
	}
}

// prefixesOf returns the prefixes under which kube-apiserver counts a value: those of providers
// that have several keys are two, such as k8s:enc:aesgcm:v1: and key1:.
func prefixesOf(prefix string) []string {
	const parts = 5 // of k8s:enc:PROVIDER:VERSION:KEY:
	split := strings.SplitAfter(prefix, ":")
	switch {
	case prefix == "":
		return []string{"identity"}
	case len(split) <= parts || split[2] == "kms:":
		return []string{prefix}
	}
	return []string{strings.Join(split[:parts-1], ""), strings.Join(split[parts-1:], "")}
}
