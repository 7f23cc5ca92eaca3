package main

import (
	"math"
	"os"
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

// addSeconds takes over how long a part took. A group may have several, one of which runs alone.
func (k *keeper) addSeconds(side, group string, took time.Duration) {
	if k.record.Seconds[side] == nil {
		k.record.Seconds[side] = map[string]int{}
	}
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
