// Package levelwiretest runs a real API server in the process of a test, in
// milliseconds and without anything installed: memory storage, a port and a
// data directory of its own. Tests that each start one may run in parallel.
package levelwiretest
