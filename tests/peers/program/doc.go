// Package program runs the levelwire command as a process of its own, for tests
// that need what only a process has: a start, a command line, memory and
// processor time that are nobody else's.
package program
