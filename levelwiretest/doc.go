// Package levelwiretest runs a real API server in the process of a test, in
// milliseconds and without anything installed: memory storage and a data directory
// of its own, at a port (Start) or without one (StartInMemory, NewClient). Tests that
// each start one may run in parallel, or in bubbles of testing/synctest.
//
// It takes the place of a fake client: what answers is the registry itself, with its
// resourceVersions, watches, conflicts, finalizers and server-side apply. Faults makes
// requests fail as networks and servers do.
package levelwiretest
