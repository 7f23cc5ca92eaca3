// Package invariant lets the watch cache check, while it works, what it relies on and promises.
// Only builds with the tag invariants do so: the Makefile runs all tests with it, and builds the
// server without. A broken invariant is a fault of the server, and ends the process.
package invariant

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// violation is the sentence that says which invariant is broken.
type violation string

// catching counts the calls of Catch.
var catching atomic.Int64

// Broken ends the process with a sentence: which invariant is broken, of which resource, at which
// versions. It panics on a goroutine of its own, because a server survives the panics of its
// requests. It does not return.
func Broken(format string, args ...any) {
	broken := violation("broken invariant: " + fmt.Sprintf(format, args...))
	if catching.Load() > 0 {
		panic(broken)
	}
	stack := debug.Stack()
	go func() { panic(fmt.Sprintf("%s\n\nfound by\n%s", broken, stack)) }()
	select {}
}

// Catch calls f, and returns the sentence of the invariant that f has found broken; "" if it has
// found none. It is for tests of the checks.
func Catch(f func()) (sentence string) {
	catching.Add(1)
	defer catching.Add(-1)
	defer func() {
		reason := recover()
		broken, ok := reason.(violation)
		if reason != nil && !ok {
			panic(reason)
		}
		sentence = string(broken)
	}()
	f()
	return ""
}
