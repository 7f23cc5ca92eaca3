package program

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc: sysconf(_SC_CLK_TCK), which
// is 100 on every architecture that Go runs on.
const clockTick = time.Second / 100

// Usage is what a running process has used.
type Usage struct {
	// CPU is its processor time since it started, user's and kernel's.
	CPU time.Duration
	// Resident is its memory that is in RAM, in bytes, and Peak the most that
	// it was.
	Resident, Peak int64
}

// Usage reads it from /proc.
func (s *Server) Usage() (Usage, error) { return UsageOf(s.cmd.Process.Pid) }

// UsageOf is Usage of any process.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	// The name, in parentheses, may hold anything; what follows are numbers, of
	// which utime and stime are the 14th and 15th of the line.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var usage Usage
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Usage{}, err
		}
		usage.CPU += time.Duration(ticks) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	for line := range strings.Lines(string(status)) {
		var kB int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kB); err == nil {
			usage.Resident = kB << 10
		} else if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kB); err == nil {
			usage.Peak = kB << 10
		}
	}
	return usage, nil
}
