package runtimelimits

import (
	"os"
	"runtime"

	"github.com/levelwire/levelwire/internal/processors"
)

// leastProcs is the least GOMAXPROCS of a server while requests compute, for the reason
// that package processors gives. On larger machines a processor is usually free.
const leastProcs = 4

// SpareProcs has GOMAXPROCS be leastProcs meanwhile if it is less, and not by the user or by
// a limit of the container: one that uses more processors than its limit for a moment is
// stopped for the rest of the period. It belongs to the command and not to the server, as
// BoundGarbage does.
func SpareProcs() (stop func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	return processors.Spare(procs(runtime.GOMAXPROCS(0), runtime.NumCPU()))
}

// procs is what GOMAXPROCS should be while requests compute, where Go has set it to
// byDefault, on a machine that has this many processors for the process.
func procs(byDefault, processors int) int {
	if byDefault < processors { // a limit of the container
		return byDefault
	}
	return max(byDefault, leastProcs)
}
