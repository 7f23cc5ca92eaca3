// Package contain calls functions of the program on goroutines of this library.
package contain

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// PanicError is the panic of a function of the program. Its text is one line, which names where it
// began: it may be logged with each event or each attempt.
type PanicError struct {
	What  string // the function
	Value any    // of the panic
	Stack []byte
	place string
}

func (e *PanicError) Error() string {
	text := fmt.Sprint(e.Value)
	if strings.ContainsAny(text, "\r\n") {
		text = strconv.Quote(text)
	}
	return fmt.Sprintf("%s panicked: %s (%s)", e.What, text, e.place)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Call calls a function of the program, which what names. A panic, which would end the process,
// is a PanicError: it concerns one request or one report, and the objects stay what they are.
func Call(what string, call func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = Recovered(what, r)
		}
	}()
	call()
	return nil
}

// Recovered makes an error of what recover has returned. Only the deferred function itself may call it.
func Recovered(what string, value any) error {
	return &PanicError{What: what, Value: value, Stack: debug.Stack(), place: place()}
}

// place returns the function, file and line of the latest panic of this goroutine.
func place() string {
	const skip, depth = 3, 32 // Callers, place and Recovered
	var callers [depth]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(skip, callers[:])])
	for panicked := false; ; {
		frame, more := frames.Next()
		switch inRuntime := strings.HasPrefix(frame.Function, "runtime."); {
		case frame.Function == "runtime.gopanic":
			panicked = true
		case panicked && !inRuntime:
			name := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
			return fmt.Sprintf("%s, %s:%d", name, filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return "its place is not known"
		}
	}
}
