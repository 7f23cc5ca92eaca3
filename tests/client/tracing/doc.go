// Package tracing tests the client's spans against a real server; tests only.
package tracing
