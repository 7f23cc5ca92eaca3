// Package testwatchdog ends a test binary in which a test hangs. Test packages import it for that
// alone:
//
//	import _ "github.com/levelwire/levelwire/internal/testwatchdog"
//
// A test that waits for what the product never does would otherwise hold up its package, and what
// waits for that, until the time limit of go test: that is for all tests of the package together,
// and so many times longer. The binary panics when one wait of a test has taken 5 minutes, or a
// sixth of that limit if it is longer, as in a soak test; without a limit, under a debugger,
// nothing is watched. The panic says which test waits where, and shows all goroutines.
//
// A test that computes, or that looks again and again, is not ended: it has to have a limit of its
// own. Neither is one that waits for another process, for its subtests, or for a sync.Once: what
// hangs is elsewhere then.
package testwatchdog

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

const (
	// leastLimit is what tests wait at most before they give up by themselves (workload.Timeout).
	leastLimit = 5 * time.Minute
	// every is how often tests are looked at. Most test binaries have ended by then.
	every = time.Minute
)

func init() { watch(every, limit) }

// watch looks at the tests again and again. Between that it has no goroutine, which checks for
// leaks would find. The first call is outside of all bubbles of synctest, and so are the others.
func watch(every time.Duration, limit func() (time.Duration, bool)) {
	time.AfterFunc(every, func() {
		if limit, ok := limit(); ok {
			check(limit)
		}
		watch(every, limit)
	})
}

// limit returns how long a test may wait. It returns false if tests are not watched.
//
// It reads the command line and not the flags: the goroutine of a timer that began before main
// defined and parsed them may not read them, whatever the time.
func limit() (time.Duration, bool) {
	if bench, ok := argument(os.Args, "test.bench"); ok && bench != "" {
		return 0, false // the look would be measured
	}
	text, _ := argument(os.Args, "test.timeout")
	timeout, err := time.ParseDuration(text)
	if err != nil {
		return 0, false // this is no test, or one without a limit
	}
	return limitOf(timeout)
}

// argument returns the value of a flag: the last one on a command line counts.
func argument(line []string, name string) (value string, ok bool) {
	for i, arg := range line {
		arg, isFlag := strings.CutPrefix(arg, "-")
		if !isFlag {
			continue
		}
		flag, after, joined := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		switch {
		case flag != name:
		case joined:
			value, ok = after, true
		case i+1 < len(line):
			value, ok = line[i+1], true
		}
	}
	return value, ok
}

// limitOf is limit for a time limit of go test; 0 is none.
func limitOf(timeout time.Duration) (time.Duration, bool) {
	return max(leastLimit, timeout/6), timeout > 0
}

// check panics if a test has waited for limit. It counts whole minutes.
func check(limit time.Duration) {
	runtime.GC() // the runtime counts a wait from the first collection that finds it
	hung := hanging(stacks(), limit)
	if len(hung) == 0 {
		return
	}
	debug.SetTraceback("all")
	panic(fmt.Sprintf("a test has waited for more than %v:\n%s", limit, strings.Join(hung, "\n")))
}

// stacks returns the stacks of all goroutines, as a panic prints them.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return string(buf[:n])
		}
	}
}
