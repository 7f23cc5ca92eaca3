package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Results stand between these lines of a report; the rest of it is for people
// to write.
const (
	beginMark = "<!-- results: written by `make bench-client` -->"
	endMark   = "<!-- end of results -->"
)

// titles of the groups, in the order of the report.
var titles = []struct{ group, title string }{
	{"sync", "Initial sync"}, {"restart", "Restart"}, {"events", "Events from the socket to the handlers"},
	{"machinery", "Events without decoding"}, {"indexer", "Indexer"}, {"idle", "Idle informers"},
}

// write puts the results into the report.
func (p *plan) write(ctx context.Context, all []*comparison) error {
	var b bytes.Buffer
	p.describe(ctx, &b)
	for _, t := range titles {
		written := false
		for _, c := range all {
			if c.group != t.group {
				continue
			}
			if !written {
				fmt.Fprintf(&b, "\n### %s\n", t.title)
				written = true
			}
			c.write(&b)
		}
	}
	if p.report == "" {
		_, err := os.Stdout.Write(b.Bytes())
		return err
	}
	old, err := os.ReadFile(p.report)
	if err != nil {
		return err
	}
	head, rest, found := bytes.Cut(old, []byte(beginMark))
	_, tail, closed := bytes.Cut(rest, []byte(endMark))
	if !found || !closed {
		return errors.New(p.report + " has no lines that mark where results belong")
	}
	page := slices.Concat(head, []byte(beginMark+"\n"), b.Bytes(), []byte("\n"+endMark), tail)
	return os.WriteFile(p.report, page, 0o644)
}

func (p *plan) describe(ctx context.Context, b *bytes.Buffer) {
	commit := "unknown"
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	peer := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/client-go" {
				peer = m.Version
			}
		}
	}
	fmt.Fprintf(b, "\n%s, commit %s, client-go %s, %s, %s/%s, %s, processors: %d. Pods: %d, events: %d, idle informers: %d; medians of %d.\n",
		time.Now().UTC().Format(time.DateOnly), commit, peer, runtime.Version(), runtime.GOOS, runtime.GOARCH, processorName(), runtime.NumCPU(),
		p.pods, p.events, p.informers, p.repeat)
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

// write is a table of one comparison. The last column is how many times better
// the first library is.
func (c *comparison) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%s\n\n| | %s | %s | ratio |\n|-|-:|-:|-:|\n", c.name, c.first.Library, c.second.Library)
	for _, name := range slices.Sorted(maps.Keys(c.got[0][0])) {
		first, second := median(c.got[0], name), median(c.got[1], name)
		ratio := second / first
		if name == "events per s" {
			ratio = first / second
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, number(first), number(second), times(ratio))
	}
}

func times(ratio float64) string {
	if ratio >= 9.95 {
		return fmt.Sprintf("%.0f×", ratio)
	}
	return fmt.Sprintf("%.1f×", ratio)
}

// number has three digits that matter.
func number(v float64) string {
	switch {
	case v >= 100:
		return grouped(fmt.Sprintf("%.0f", v))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// grouped writes a comma between thousands.
func grouped(digits string) string {
	for n := len(digits) - 3; n > 0; n -= 3 {
		digits = digits[:n] + "," + digits[n:]
	}
	return digits
}
