package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/benchmarks/hostile/attacks"
	"github.com/levelwire/levelwire/benchmarks/hostile/quiet"
	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// result is what was measured with a server.
type result struct {
	side   string
	phases []*phase
	lost   int // objects of acknowledged writes that the informer does not hold

	mu     sync.Mutex
	counts []attacks.Count
}

// phase is what was measured in a part of the time.
type phase struct {
	name              string
	took              time.Duration
	others            time.Duration  // processor time of what has nothing to do with the measurement
	server, attackers time.Duration  // processor time
	memory            measure.Memory // at its end, with the peak in it
	history           int64          // bytes of it that are our server's history of changes
	clients           map[string]*quiet.Measure
}

// phase measures for a while.
func (r *result) phase(ctx context.Context, name string, length time.Duration, t *tested.Server, c *quiet.Clients, attacker *process.Child) error {
	p := &phase{name: name}
	if err := t.ResetPeak(); err != nil {
		return err
	}
	begun := time.Now()
	before, err := t.CPU()
	if err != nil {
		return err
	}
	elseBefore, err := elsewhere(before, 0)
	if err != nil {
		return err
	}
	const interval = 10 * time.Second
	for left := length; left > 0; left = length - time.Since(begun) {
		if err := tested.Pause(ctx, min(left, interval)); err != nil {
			return err
		}
		m, err := t.Memory()
		if err != nil {
			return err
		}
		r.mu.Lock()
		made := int64(0)
		for _, k := range r.counts {
			made += k.Made
		}
		r.mu.Unlock()
		progress(r.side, "%s, %v of %v: %d errors, %d MiB, %d attacks made", name, time.Since(begun).Round(time.Second), length.Round(time.Second), c.Errors(), m.Resident>>20, made)
	}
	after, err := t.CPU()
	if err != nil {
		return err
	}
	if p.memory, err = t.Memory(); err != nil {
		return err
	}
	if p.history, err = t.History(ctx); err != nil {
		return err
	}
	if attacker != nil {
		if p.attackers, err = attacker.CPU(); err != nil {
			return err
		}
	}
	if p.others, err = elsewhere(after, p.attackers); err != nil {
		return err
	}
	p.others -= elseBefore
	p.took, p.server, p.clients = time.Since(begun), after-before, c.Take()
	r.phases = append(r.phases, p)
	return nil
}

// elsewhere is the processor time of the machine without that of the server, the attackers and
// the quiet clients, which are this process.
func elsewhere(server, attackers time.Duration) (time.Duration, error) {
	busy, err := measure.BusyCPU()
	if err != nil {
		return 0, err
	}
	own, err := measure.OwnCPU()
	return busy - server - attackers - own, err
}

// The promise: how much the p99 under attack may be of the quiet one, and the memory after
// of that before, both without the history of changes: the quiet clients write all the
// time, and the server keeps up to 64 MiB of their changes for watches that resume.
const (
	promisedLatency    = 3.0
	promisedOfCrowding = 2.0
	promisedMemory     = 2.0
)

// memoryBack is when memory must be back: an idle process of Go collects its garbage every two
// minutes, needs two collections to empty its pools, and gives pages back little by little.
const memoryBack = 5 * time.Minute

// enoughValues is how many values a p99 should be of: ten are above it then.
const enoughValues = 1000

// print writes the tables, as in docs/faults.md. The error is what our server has not kept
// of its promise.
func (p *plan) print(ctx context.Context, found []*result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%v each, rate %v, %d objects; %s\n", p.duration, p.scale, p.objects, measure.Describe(ctx))
	fmt.Fprint(&b, "\n| server | quiet client | quiet p50 / p99 (values) | hostile p50 / p99 (values) | after p50 / p99 (values) | p99 hostile/quiet | errors |\n|-|-|-|-|-|-|-|\n")
	var broken []error
	fewest := int64(enoughValues)
	for _, r := range found {
		for _, name := range quiet.Names() {
			fmt.Fprintf(&b, "| %s | %s |", r.side, name)
			failures := 0
			for n := range 3 {
				if n >= len(r.phases) {
					fmt.Fprint(&b, " |")
					continue
				}
				m := r.phases[n].clients[name]
				failures += m.Errors
				fmt.Fprint(&b, latency(&m.Latency))
				fewest = min(fewest, m.Latency.Count)
				if m.Errors > 0 {
					progress(r.side, "%s, %s: %d errors, the last is: %s", r.phases[n].name, name, m.Errors, m.Last)
				}
			}
			ratio := r.ratio(name)
			fmt.Fprintf(&b, " %s | %d |\n", measure.Times(ratio), failures)
			if r.side == tested.Ours && (failures > 0 || ratio > p.promised) {
				broken = append(broken, fmt.Errorf("%s: %d errors, p99 %s", name, failures, measure.Times(ratio)))
			}
		}
	}
	if fewest < enoughValues {
		fmt.Fprintf(&b, "\nA p99 of fewer than %d values is one of the ten largest, and differs from run to run by half and more: measure for longer.\n", enoughValues)
	}
	fmt.Fprint(&b, "\n| server | phase | server's processors | attackers' processors | other programs' processors | memory at its end, MiB | of it history | peak, MiB |\n|-|-|-|-|-|-|-|-|\n")
	for _, r := range found {
		for _, f := range r.phases {
			fmt.Fprintf(&b, "| %s | %s, %v | %.2f | %.2f | %.2f | %d | %d | %d |\n", r.side, f.name, f.took.Round(time.Second), f.server.Seconds()/f.took.Seconds(), f.attackers.Seconds()/f.took.Seconds(), f.others.Seconds()/f.took.Seconds(), f.memory.Resident>>20, f.history>>20, f.memory.Peak>>20)
		}
		if r.side == tested.Ours && len(r.phases) == 3 && r.phases[2].took >= memoryBack {
			if ratio := float64(r.phases[2].withoutHistory()) / float64(r.phases[0].withoutHistory()); ratio > promisedMemory {
				broken = append(broken, fmt.Errorf("memory after, without history, is %s of that before", measure.Times(ratio)))
			}
		}
		if r.side == tested.Ours && r.lost > 0 {
			broken = append(broken, fmt.Errorf("%d objects are not what was acknowledged", r.lost))
		}
		fmt.Fprintf(&b, "| %s | objects that are not what was acknowledged: %d | | | | | | |\n", r.side, r.lost)
	}
	fmt.Fprint(&b, "\n| attack |")
	for _, r := range found {
		fmt.Fprintf(&b, " %s: made | of these cut off |", r.side)
	}
	fmt.Fprint(&b, "\n|-|"+strings.Repeat("-|-|", len(found))+"\n")
	for _, name := range attacks.Names() {
		fmt.Fprintf(&b, "| %s |", name)
		for _, r := range found {
			fmt.Fprint(&b, r.count(name))
		}
		fmt.Fprintln(&b)
	}
	_, err := os.Stdout.WriteString(b.String())
	return errors.Join(append(broken, err)...)
}

func (p *phase) withoutHistory() int64 { return p.memory.Resident - p.history }

// ratio is the p99 under attack, of the quiet one.
func (r *result) ratio(client string) float64 {
	if len(r.phases) < 2 {
		return 0
	}
	before, during := r.phases[0].clients[client].Latency.Quantile(0.99), r.phases[1].clients[client].Latency.Quantile(0.99)
	return float64(during) / float64(max(before, time.Microsecond))
}

func (r *result) count(attack string) string {
	for _, k := range r.counts {
		if k.Name == attack {
			return fmt.Sprintf(" %d | %d |", k.Made, k.Cut)
		}
	}
	return " | |"
}

// latency is a cell of the table.
func latency(h *load.Histogram) string {
	return fmt.Sprintf(" %s / %s (%d) |", millis(h.Quantile(0.5)), millis(h.Quantile(0.99)), h.Count)
}

func millis(d time.Duration) string {
	return measure.Number(float64(d)/float64(time.Millisecond)) + " ms"
}
