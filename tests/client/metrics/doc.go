// Package metrics tests what the metrics of the client show of informers of a real
// server; tests only.
package metrics
