package main

import (
	"fmt"
	"io"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
)

// print writes a step's tables, and what broke.
func (s *step) print(to io.Writer, duration time.Duration, broken []string) {
	seconds := s.took.Seconds()
	fmt.Fprintf(to, "\nAt %s of the real rate, for %v: server %.2f processors and %.0f MB (peak %.0f MB), this program %.2f processors\n\n", share(s.rate), duration,
		s.cpu.Seconds()/seconds, float64(s.memory.Resident)/1e6, float64(s.memory.Peak)/1e6, s.own.Seconds()/seconds)
	fmt.Fprint(to, "| writes | due a second | answered | refused | failed | p50 / p99 / p99.9 ms |\n|-|-|-|-|-|-|\n")
	for _, kind := range kinds {
		if due, served := s.due[kind]; served {
			n := s.counts[kind]
			fmt.Fprintf(to, "| %s | %s | %d | %d | %d | %s |\n", kind, measure.Number(due), n.Sent, n.Refused, n.Failed, quantiles(&n.Latency))
		}
	}
	fmt.Fprint(to, "\n| watches of | watches | events | ended | from sending the write to the watcher's socket, p50 / p99 / p99.9 ms |\n|-|-|-|-|-|\n")
	for _, e := range s.events {
		fmt.Fprintf(to, "| %s | %d | %d | %d | %s |\n", e.name, e.watchers, e.Events, e.Ended, quantiles(&e.Latency))
	}
	if len(broken) == 0 {
		fmt.Fprint(to, "\nNothing broke.\n")
		return
	}
	fmt.Fprint(to, "\nBroken:\n")
	for _, what := range broken {
		fmt.Fprintln(to, "- "+what)
	}
}

func share(rate float64) string { return fmt.Sprintf("%s %%", measure.Number(100*rate)) }

func quantiles(h *load.Histogram) string {
	if h.Count == 0 {
		return "–"
	}
	text := ""
	for _, q := range []float64{0.5, 0.99, 0.999} {
		text += " / " + measure.Number(float64(h.Quantile(q))/float64(time.Millisecond))
	}
	return text[len(" / "):]
}
