package contain

import (
	"errors"
	"log/slog"
	"sync/atomic"
)

// Counter counts panics of functions that are called for what they do and not for an answer, and keeps
// the log readable while they panic again and again. It is safe for concurrent use; its zero value has
// counted none.
type Counter struct{ panics atomic.Int64 }

// Call calls a function of the program, which what names. It logs the first panic with its stack, the
// tenth, the hundredth and so on.
func (c *Counter) Call(log *slog.Logger, what string, call func()) {
	err := Call(what, call)
	if err == nil {
		return
	}
	if n := c.panics.Add(1); IsPowerOfTen(n) {
		var panicked *PanicError
		errors.As(err, &panicked)
		log.Error("a function of the program panicked", "panics", n, "error", err, "stack", string(panicked.Stack))
	}
}

// Count is how many calls have panicked.
func (c *Counter) Count() int64 { return c.panics.Load() }

// IsPowerOfTen reports whether n is 1, 10, 100 and so on.
func IsPowerOfTen(n int64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
