// Package program runs the levelwire command as a process of its own, for tests
// that need what only a process has: a start, a command line, and memory and
// processor time of its own.
package program
