// Package eventlog is the log of a watch cache: entries in the order of their
// revisions, written by one goroutine and read, without locks, by any number of
// cursors.
package eventlog
