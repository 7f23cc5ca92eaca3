//go:build linux

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// outages measures what clients notice, by the fault that is there.
type outages struct {
	mu     sync.Mutex
	fault  string // the last that began
	wrote  time.Time
	acked  map[uint64]time.Time // when a version was acknowledged
	top    uint64               // the newest of them
	worst  map[string]*outage
	failed map[string]int // requests, by how they failed
	also   func(at time.Time, version uint64)
}

// outage is the worst of a kind of fault.
type outage struct {
	count    int
	writes   time.Duration // without an acknowledged one
	events   time.Duration // from an acknowledged write until a watch shows it
	recovery time.Duration // from the fault's end until all is ready and writes are acknowledged
}

func newOutages() *outages {
	return &outages{wrote: time.Now(), acked: map[uint64]time.Time{}, worst: map[string]*outage{}, failed: map[string]int{}}
}

func (o *outages) begin(fault string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = fault
	if o.worst[fault] == nil {
		o.worst[fault] = &outage{}
	}
	o.worst[fault].count++
	o.wrote = time.Now()
}

func (o *outages) now() *outage {
	if o.worst[o.fault] == nil {
		o.worst[o.fault] = &outage{}
	}
	return o.worst[o.fault]
}

// acknowledged notes a write; 0 is a deletion.
func (o *outages) acknowledged(version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	at := o.now()
	at.writes = max(at.writes, now.Sub(o.wrote))
	o.wrote = now
	if version > 0 {
		o.acked[version] = now
		o.top = max(o.top, version)
		if o.also != nil {
			o.also(now, version)
		}
	}
}

// onAcknowledged has f called with each write from now on, in order.
func (o *outages) onAcknowledged(f func(at time.Time, version uint64)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.also = f
}

// resume makes a time without writes none, which the test itself has made.
func (o *outages) resume() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrote = time.Now()
}

// seen notes that a watch has shown a version.
func (o *outages) seen(version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if acked, ok := o.acked[version]; ok {
		at := o.now()
		at.events = max(at.events, time.Since(acked))
	}
}

// newest is the newest version that was acknowledged: what a consistent read shows at least.
func (o *outages) newest() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.top
}

func (o *outages) lastWrite() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrote
}

func (o *outages) recovered(took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.now()
	at.recovery = max(at.recovery, took)
}

func (o *outages) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed[kindOf(err)]++
}

// kindOf is an error's text without what differs from one to the next.
func kindOf(err error) string {
	text := err.Error()
	for _, known := range []string{
		"object has been modified", "already exists", "not found", "context deadline exceeded", "connection reset", "connection refused", "EOF",
		"no leader", "leader changed", "request timed out", "Unavailable", "GOAWAY", "shutting down", "too many requests", "database space exceeded",
		"proposal dropped", "waiting",
	} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text[max(0, len(text)-160):]
}

func (o *outages) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-46s %5s %14s %14s %14s\n", "fault", "times", "no write for", "event late by", "recovered in")
	var names []string
	for name := range o.worst {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w := o.worst[name]
		fmt.Fprintf(&b, "%-46s %5d %14v %14v %14v\n", name, w.count, round(w.writes), round(w.events), round(w.recovery))
	}
	fmt.Fprintf(&b, "writes that failed: %v", o.failed)
	return b.String()
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
