package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Module is a module that this program was built with, and what a report calls
// it.
type Module struct{ Name, Path string }

// Describe says in one line when and where something was measured: date,
// commit, versions of the modules, Go, processor.
func Describe(ctx context.Context, modules ...Module) string {
	commit := "unknown"
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	parts := []string{time.Now().UTC().Format(time.DateOnly), "commit " + commit}
	for _, m := range modules {
		parts = append(parts, m.Name+" "+m.version())
	}
	return strings.Join(append(parts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, processorName(),
		fmt.Sprintf("processors: %d", runtime.NumCPU())), ", ")
}

func (m Module) version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == m.Path {
				return d.Version
			}
		}
	}
	return "of unknown version"
}

func processorName() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// BusyCPU is the processor time that all processes of the machine have used since it
// started, and the system itself: with that of a benchmark's own processes it says
// whether others were at work.
func BusyCPU() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(stat))
}

// parseBusy reads the first line of /proc/stat, see proc_stat(5): user, nice, system, idle,
// iowait, irq and softirq, in hundredths of a second.
func parseBusy(stat string) (sum time.Duration, err error) {
	const idle, iowait, softirq = 4, 5, 7
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= softirq || fields[0] != "cpu" {
		return 0, fmt.Errorf("%q is not the processor time of a machine", line)
	}
	for n := 1; n <= softirq; n++ {
		ticks, err := strconv.ParseInt(fields[n], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of the machine: %w", err)
		}
		if n != idle && n != iowait {
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum, nil
}
