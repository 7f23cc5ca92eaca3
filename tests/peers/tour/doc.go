// Package tour runs the tour of the client library (tests/client/tour) against a
// server of the upstream libraries.
package tour
