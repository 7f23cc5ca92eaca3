package main

import (
	"context"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// keeper writes the results and the page after each part, so that what has run stays when the rest
// is interrupted.
type keeper struct {
	mu     sync.Mutex
	record *results
	needs  needs
	o      options
	timed  map[string]bool // sides and groups of which a part has run
	run    string          // its day and commit
	worse  bool            // a test has failed that had passed before
}

// add takes over what came of a part.
func (k *keeper) add(side string, p part, found map[testName]outcome, took time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.record.add(side, found)) > 0 {
		k.worse = true
	}
	if k.o.focus == "" {
		k.addSeconds(side, p.group, took)
	}
	if k.o.page == "" {
		return nil
	}
	if err := k.record.write(k.o.results); err != nil {
		return err
	}
	return os.WriteFile(k.o.page, []byte(page(k.record, k.needs)), 0o644)
}

// describeRun says when and of which commit the run is.
func describeRun(ctx context.Context) string {
	commit := "unknown"
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	return time.Now().UTC().Format(time.DateOnly) + ", commit " + commit
}

// addSeconds takes over when a part ran and how long it took. A group may have several, one of which runs alone.
func (k *keeper) addSeconds(side, group string, took time.Duration) {
	if k.record.Seconds[side] == nil {
		k.record.Seconds[side] = map[string]int{}
	}
	if k.record.Recorded[side] == nil {
		k.record.Recorded[side] = map[string]string{}
	}
	k.record.Recorded[side][group] = k.run
	key := side + " " + group
	if !k.timed[key] {
		k.record.Seconds[side][group] = 0
	}
	k.record.Seconds[side][group] += int(math.Round(took.Seconds()))
	if k.timed == nil {
		k.timed = map[string]bool{}
	}
	k.timed[key] = true
}
