// Package contain calls functions of the program on goroutines of this library.
package contain

import (
	"fmt"
	"runtime/debug"
)

// Call calls a function of the program, which what names. A panic, which would end the process,
// is an error with its stack: it concerns one request or one report, and the objects stay what
// they are.
func Call(what string, call func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panicked: %v\n%s", what, r, debug.Stack())
		}
	}()
	call()
	return nil
}
