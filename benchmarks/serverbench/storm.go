package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/stormclients"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// What storms are measured in.
const (
	untilAll       = "s until all had caught up"
	untilMost      = "s until 99 % had"
	untilHalf      = "s until half had"
	listsBegun     = "lists begun"
	expiredAnswers = "410s"
	resumed        = "watches resumed"
	sentMB         = "sent MB"
	etcdCPU        = "of it etcd's"
	restartWall    = "restart before it, wall s"
	restartCPU     = "restart before it, server CPU s"
)

// storm is what happens to a server while all its clients are cut off, before
// they come back at once.
type storm struct {
	changed, deleted int
	compacted        compaction
	number           int // storms after one another change different pods
}

// compaction is which process compacts the store at its newest version before
// the server starts again.
type compaction int

const (
	notCompacted    compaction = iota
	byServer                   // our server itself; the benchmark compacts upstream's etcd, as kube-apiserver does
	byForeignClient            // a client of etcd, which writes no tombstones
)

// stormGroup is how long it takes until thousands of informers are up to date
// again, and what that costs the server.
func stormGroup(p *plan) *group {
	few, many := max(p.pods/2000, 1), max(p.pods/100, 4)
	g := &group{name: "storm", title: "Storms", servers: own, apart: true}
	add := func(name string, oursOnly bool, s storm) {
		s.number = len(g.rows)
		r := &row{name: name, once: true, oursOnly: oursOnly, limit: 30 * time.Minute, quantities: stormQuantities()}
		r.measure = func(ctx context.Context, b *bench, on *tested.Server) (result, error) {
			return b.storm(ctx, on.Side, s)
		}
		g.rows = append(g.rows, r)
		if !oursOnly {
			g.plots = append(g.plots, caughtUp(fmt.Sprintf("storm-%d", len(g.rows)), r))
		}
	}
	add(fmt.Sprintf("restart, %s changed", measure.Grouped(few)), false, storm{changed: few})
	changed := fmt.Sprintf("restart, compacted, %s changed, %s of them deleted", measure.Grouped(many), measure.Grouped(many/4))
	add(changed, false, storm{changed: many - many/4, deleted: many / 4, compacted: byServer})
	add(changed+", without tombstones", true, storm{changed: many - many/4, deleted: many / 4, compacted: byForeignClient})
	return g
}

func stormQuantities() []quantity {
	q := []quantity{
		{name: finished, more: true}, {name: untilAll}, {name: untilMost}, {name: untilHalf},
		{name: listsBegun}, {name: expiredAnswers}, {name: resumed, more: true}, {name: sentMB},
		{name: serverCPU}, {name: etcdCPU}, {name: peakMB}, {name: clientCPU},
	}
	for _, l := range stormclients.Libraries {
		for _, name := range []string{untilCaughtUp, listsBegun, differences, receivedMB, cpuSeconds} {
			q = append(q, quantity{name: l + ": " + name})
		}
	}
	return append(q, quantity{name: restartWall}, quantity{name: restartCPU})
}

// What libraries' informers are measured in.
const (
	untilCaughtUp = "s until it had caught up"
	differences   = "differences"
	receivedMB    = "received MB"
	cpuSeconds    = "CPU s"
)

// storm is one, from the start of a server to the last of its informers.
func (b *bench) storm(ctx context.Context, side string, s storm) (found result, err error) {
	dir, err := b.seededIn(ctx, "storm-"+side, side, b.plan.pods)
	if err != nil {
		return found, err
	}
	t := &tested.Server{Side: side, Objects: b.plan.pods}
	if t.Port, err = freePort(ctx); err != nil {
		return found, err
	}
	if side == tested.Ours && s.compacted == byServer {
		t.Flags = []string{"--compaction-interval=500ms", "--compaction-retention=1ms"}
	}
	if err := b.servers.Launch(ctx, t, dir); err != nil {
		return found, err
	}
	defer t.Kill()
	f, err := stormclients.Start(ctx, b.dir, t.Access, stormclients.Options{
		Informers: b.plan.informers, Everything: b.plan.everything, Pods: b.plan.pods,
	})
	if err != nil {
		return found, err
	}
	defer f.Kill()
	// Pods change as they always do: most informers have seen something since
	// their list, and none the same last version as all others.
	if err = t.Change(ctx, s.before(b.plan.pods)); err == nil {
		err = f.CatchUp(ctx)
	}
	if err != nil {
		return found, fmt.Errorf("before the storm: %w", err)
	}
	b.progress("%s: %d informers watch, and are cut off", side, b.plan.informers)
	if err := f.Cut(); err != nil {
		return found, err
	}
	if err := t.Change(ctx, s.meanwhile(b.plan.pods)); err != nil {
		return found, fmt.Errorf("while all were cut off: %w", err)
	}
	if err := f.Expect(); err != nil {
		return found, err
	}
	if err := b.replace(ctx, t, dir, s); err != nil {
		return found, fmt.Errorf("restart: %w", err)
	}
	if err := t.Settle(ctx); err != nil {
		return found, err
	}
	b.progress("%s: started again in %v", side, t.Ready.Round(10*time.Millisecond))
	found, complete, err := b.letGo(ctx, t, f)
	if err == nil && complete {
		err = b.aftermath(ctx, t, f, s, &found)
	}
	if err != nil && side == tested.Upstream && ctx.Err() == nil {
		found.add(err.Error()) // a result, too
		err = nil
	}
	return found, err
}

// aftermath checks that it was the storm that was meant, and that all informers
// get what happens after it, and did not only look as if.
func (b *bench) aftermath(ctx context.Context, t *tested.Server, f *stormclients.Clients, s storm, found *result) error {
	if err := s.verify(ctx, t); err != nil {
		return err
	}
	err := t.Change(ctx, s.after(b.plan.pods))
	if err == nil {
		err = f.CatchUp(ctx)
	}
	if err != nil {
		return fmt.Errorf("after the storm: %w", err)
	}
	now, err := f.Look()
	if more := float64(now.Herd.Streams+now.Herd.Lists) - found.Values[listsBegun]; err == nil && more > 0 {
		found.add(fmt.Sprintf("%.0f lists more after all had caught up", more))
	}
	return err
}

// replace ends the server with SIGKILL, has the store compacted, and starts
// another server at the same address, with its defaults.
func (b *bench) replace(ctx context.Context, t *tested.Server, dir string, s storm) error {
	if s.compacted == byServer && t.Side == tested.Ours {
		// It looks twice a second what is to be forgotten, and writes down some
		// of it before.
		if err := tested.Pause(ctx, 3*time.Second); err != nil {
			return err
		}
	}
	t.KillServer()
	var version int64
	switch {
	case s.compacted == notCompacted:
	case t.Side == tested.Upstream:
		if err := process.Run(ctx, b.dir, "forget", forgetTask{Etcd: t.Etcd}, &version); err != nil {
			return err
		}
	case s.compacted == byForeignClient:
		if err := process.Run(ctx, b.dir, "forget", forgetTask{Dir: tested.EtcdDir(tested.Ours, dir)}, &version); err != nil {
			return err
		}
	}
	t.Flags = nil
	return b.servers.Launch(ctx, t, dir)
}

// letGo opens the gate and watches until all informers have caught up, or until
// there is no point in waiting. Ours must not come to that.
func (b *bench) letGo(ctx context.Context, t *tested.Server, f *stormclients.Clients) (found result, complete bool, err error) {
	used, err := t.CPU()
	if err != nil {
		return found, false, err
	}
	found.Values = map[string]float64{restartWall: t.Ready.Seconds(), restartCPU: (used - t.CPUBefore).Seconds()}
	if err := t.ResetPeak(); err != nil {
		return found, false, err
	}
	others, err := t.StoreCPU()
	if err != nil {
		return found, false, err
	}
	if err := f.Open(); err != nil {
		return found, false, err
	}
	seen, note, err := f.Watch(ctx, t)
	if err != nil {
		return found, false, err
	}
	found.add(note)
	now, err := t.CPU()
	if err != nil {
		return found, false, err
	}
	memory, err := t.Memory()
	if err != nil {
		return found, false, err
	}
	found.Values[serverCPU], found.Values[peakMB] = (now - used).Seconds(), mb(memory.Peak)
	if after, err := t.StoreCPU(); err != nil {
		return found, false, err
	} else if t.Side == tested.Upstream {
		found.Values[etcdCPU] = (after - others).Seconds()
	}
	describe(seen, &found)
	if note != "" && t.Side == tested.Ours {
		return found, false, errors.New(note)
	}
	return found, note == "", nil
}

// verify checks that our server sent the history that the storm is about.
func (s storm) verify(ctx context.Context, t *tested.Server) error {
	if t.Side != tested.Ours {
		return nil
	}
	told, err := resumes(ctx, t)
	if err != nil {
		return err
	}
	exact, coalesced := told["exact"], told["coalesced"]
	switch {
	case s.compacted == notCompacted && (exact == 0 || coalesced > 0),
		s.compacted == byServer && coalesced == 0,
		s.compacted == byForeignClient && coalesced > 0:
		return fmt.Errorf("this is not the storm that was meant: %d watches got exact and %d coalesced history", exact, coalesced)
	}
	return nil
}

// resumes is how many watches of pods began at a version, by the history that
// our server sent them.
func resumes(ctx context.Context, t *tested.Server) (map[string]int, error) {
	var text string
	err := t.With(ctx, func(c *load.Conn) error {
		answer := c.Do(ctx, load.Request{Path: "/metrics"})
		text = string(answer.Body)
		return answer.Check(200)
	})
	if err != nil {
		return nil, err
	}
	return parseResumes(text), nil
}

// parseResumes finds the resumes of pods among metrics.
func parseResumes(metrics string) map[string]int {
	resumes := map[string]int{}
	for line := range strings.Lines(metrics) {
		labels, ok := strings.CutPrefix(line, "levelwire_cache_resumes_total{")
		if !ok || !strings.Contains(labels, `group=""`) || !strings.Contains(labels, `resource="pods"`) {
			continue
		}
		_, rest, _ := strings.Cut(labels, `history="`)
		history, rest, _ := strings.Cut(rest, `"`)
		_, value, _ := strings.Cut(rest, "} ")
		var n float64
		if _, err := fmt.Sscan(value, &n); err == nil {
			resumes[history] += int(n)
		}
	}
	return resumes
}

// freePort is one that no process listens on.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// describe adds what clients have seen to a result.
func describe(s stormclients.Seen, found *result) {
	h := s.Herd
	found.Values[finished] = float64(h.Converged)
	found.Values[listsBegun] = float64(h.Streams + h.Lists)
	found.Values[expiredAnswers], found.Values[resumed] = float64(h.Expired), float64(h.Resumes)
	found.Values[sentMB] = mb(h.Bytes)
	found.Values[clientCPU] = s.HerdCPU.Seconds()
	for name, percent := range map[string]int{untilHalf: 50, untilMost: 99, untilAll: 100} {
		if at, ok := h.At(percent); ok {
			found.Values[name] = at.Seconds()
		}
	}
	found.Curve = curve(h)
	for name, l := range s.Libraries {
		found.Values[name+": "+listsBegun], found.Values[name+": "+differences] = float64(l.Lists), float64(l.Differences)
		found.Values[name+": "+receivedMB], found.Values[name+": "+cpuSeconds] = mb(l.Bytes), l.CPU.Seconds()
		if l.Equal {
			found.Values[name+": "+untilCaughtUp] = l.After.Seconds()
		}
	}
	for _, text := range slices.Sorted(maps.Keys(h.Errors)) {
		found.add(fmt.Sprintf("informers met %q %d times", text, h.Errors[text]))
	}
}

var patchHeader = []hpack.HeaderField{
	{Name: "content-type", Value: "application/merge-patch+json"}, {Name: "accept", Value: jsonType}, {Name: "user-agent", Value: "load"},
}
