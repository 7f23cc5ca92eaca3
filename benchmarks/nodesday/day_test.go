package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestFullRate: what a cluster of 100,000 nodes writes, as docs/contributors/nodes-day.md has it.
func TestFullRate(t *testing.T) {
	d := day{nodes: 100_000, podsPerNode: 10, rate: 1, restarts: 1}
	for kind, want := range map[string]float64{leases: 10_000, nodes: 333, creates: 11.6, statuses: 46.3, deletes: 11.6, slicesOf: 23.1} {
		if got := d.perSecond()[kind]; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: %.1f a second, want %.1f", kind, got, want)
		}
	}
}

// TestBodies: all bodies are JSON, and those that change something say when they were sent.
func TestBodies(t *testing.T) {
	d := &day{nodes: 10, podsPerNode: 10}
	for _, r := range []load.Request{renewal(1), nodeStatus(1), newPod(d, 1, 1), podStatus(1, 1, "Running", true), sliceUpdate(1, 3), newLease(1), newNode(1), newSlice(0)} {
		if !json.Valid(r.Body) {
			t.Errorf("%s %s: %s", r.Method, r.Path, r.Body)
		}
		if r.Method == "PATCH" && !bytes.Contains(r.Body, []byte(load.SentAnnotation)) {
			t.Errorf("%s does not say when it was sent", r.Path)
		}
	}
}

// TestSmallDay: a day of 20 nodes on a real server breaks nothing, and all watchers see what
// is theirs.
func TestSmallDay(t *testing.T) {
	srv := levelwiretest.Start(t)
	config := srv.Config()
	server := &tested.Server{Side: tested.Ours, Access: tested.Access{URL: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData}}
	p := &plan{day: day{nodes: 20, podsPerNode: 5, rate: 1, restarts: 5000, proxies: 0.1}, duration: time.Second, perConnection: 10}
	c := &clients{day: &p.day}
	err := server.With(t.Context(), func(conn *load.Conn) error {
		c.conns = []*load.Conn{conn}
		if err := c.fill(t.Context()); err != nil {
			return err
		}
		crowds, err := p.watch(t.Context(), server, c.served)
		for _, w := range crowds {
			defer w.Close()
		}
		if err != nil {
			return err
		}
		s, err := p.measure(t.Context(), server, c, crowds, 1)
		if err != nil {
			return err
		}
		for _, kind := range []string{leases, creates, statuses, deletes, slicesOf} {
			if n := s.counts[kind]; n.Sent == 0 || n.Refused+n.Failed > 0 {
				t.Errorf("%s: %d written, %d refused, %d failed: %s", kind, n.Sent, n.Refused, n.Failed, n.Last)
			}
		}
		var report strings.Builder
		s.print(&report, p.duration, nil)
		for _, e := range s.events {
			if e.Ended > 0 || e.Disordered > 0 || e.Events == 0 && !strings.Contains(e.name, "nodes") || e.Events > 0 && e.Latency.Count == 0 {
				t.Errorf("%s: %+v events, %d ended, %d out of order, %d with a time", e.name, e.Events, e.Ended, e.Disordered, e.Latency.Count)
			}
			if !strings.Contains(report.String(), "| "+e.name+" |") {
				t.Errorf("the report does not have %s:\n%s", e.name, report.String())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
