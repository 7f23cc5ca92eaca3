package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
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
