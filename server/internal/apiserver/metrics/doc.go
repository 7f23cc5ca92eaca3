// Package metrics counts what the API server does, and serves the counts.
package metrics
