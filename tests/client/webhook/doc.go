// Package webhook tests the client's webhook server with a real API server that
// calls it; tests only.
package webhook
