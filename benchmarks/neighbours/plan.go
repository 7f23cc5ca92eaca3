package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/benchmarks/hostile/quiet"
	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// plan is what is to be measured.
type plan struct {
	quiet, least time.Duration
	objects      int
	works        []string
	command      string
	levelwire    string
	profiles     string
}

const (
	crowdNamespace = "crowd" // which is deleted
	quietNamespace = "quiet" // where the quiet clients write
	pagesNamespace = "pages" // which they list
	pagesObjects   = 2000
	// promised is how much the p99 may be of the quiet one.
	promised = 2.0
)

// phase is what was measured in a part of the time.
type phase struct {
	took                time.Duration
	server, controllers time.Duration // processor time
	others              time.Duration // processor time of what is neither of these nor the quiet clients
	clients             map[string]*quiet.Measure
}

func (p *plan) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "neighbours")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills what is left
	fmt.Printf("%d objects; levelwire %s; %s\n\n", p.objects, p.command, measure.Describe(ctx))
	fmt.Print("| work | client | quiet p50 / p99 (values) | meanwhile | after | p99 meanwhile/quiet | errors |\n|-|-|-|-|-|-|-|\n")
	var broken []error
	for _, w := range works {
		if !slices.Contains(p.works, w.name) {
			continue
		}
		phases, err := p.measure(ctx, filepath.Join(dir, w.name), w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		broken = append(broken, report(w, phases)...)
	}
	return errors.Join(broken...)
}

// measure starts a server, and measures one work.
func (p *plan) measure(ctx context.Context, dir string, w work) (phases [3]phase, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return phases, err
	}
	tokens, access := "", quiet.Access{Tokens: map[string]string{}, Namespace: quietNamespace, Lists: "/api/v1/namespaces/" + pagesNamespace + "/configmaps"}
	for i, name := range quiet.Names() {
		access.Tokens[name] = fmt.Sprintf("token-%d", i)
		tokens += fmt.Sprintf("token-%[1]d,quiet-%[1]d,%[1]d,quiet\n", i)
	}
	tokens += readersToken + ",readers,readers,quiet\n"
	file := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		return phases, err
	}
	t := &tested.Server{Side: tested.Ours, Command: p.command, Flags: []string{"--token-auth-file", file}}
	if p.command == "up" {
		t.Flags = append(t.Flags, "--nodes", "0")
	}
	data := filepath.Join(dir, "data")
	launcher := tested.Launcher{Dir: dir, Levelwire: p.levelwire, Profiling: p.profiles != ""}
	if err := launcher.Launch(ctx, t, data); err != nil {
		return phases, err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()
	var controllers *process.Child
	if p.command == "serve" {
		controllers, _, err = process.Execute(ctx, dir, "controllers", exec.CommandContext(ctx, p.levelwire, "controllers", "--kubeconfig", filepath.Join(data, "admin.kubeconfig"), "--log-level", "warn"))
		if err != nil {
			return phases, err
		}
		defer func() { err = errors.Join(err, controllers.Stop()) }()
	}
	if err := p.seed(ctx, t, w); err != nil {
		return phases, err
	}
	access.URL, access.CA = t.Access.URL, t.Access.CA
	err = t.With(ctx, func(c *load.Conn) error {
		lost, err := quiet.Run(ctx, access, func(q *quiet.Clients) error {
			if err := tested.Pause(ctx, 5*time.Second); err != nil { // until they and the server are warm
				return err
			}
			wait := func() error { return tested.Pause(ctx, p.quiet) }
			meanwhile := func() error {
				stop := p.profile(ctx, t, w.name)
				return errors.Join(w.do(ctx, p, t, c), stop())
			}
			for i, do := range []func() error{wait, meanwhile, wait} {
				if phases[i], err = during(t, controllers, q, do); err != nil {
					return err
				}
			}
			return nil
		})
		if lost > 0 {
			err = errors.Join(err, fmt.Errorf("%d objects are not what was acknowledged", lost))
		}
		return err
	})
	return phases, err
}

// seed makes what is there before the first phase.
func (p *plan) seed(ctx context.Context, t *tested.Server, w work) error {
	requests := []load.Request{post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"quiet"},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"quiet"}]}`)}
	for _, name := range []string{crowdNamespace, quietNamespace, pagesNamespace} {
		requests = append(requests, post("/api/v1/namespaces", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)))
	}
	if err := t.Change(ctx, requests); err != nil {
		return err
	}
	requests = nil
	for n := range pagesObjects {
		requests = append(requests, post("/api/v1/namespaces/"+pagesNamespace+"/configmaps", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page-%d"},"data":{"padding":%q}}`, n, strings.Repeat("x", 1000))))
	}
	if err := t.Change(ctx, requests); err != nil {
		return err
	}
	if w.prepare != nil {
		if err := w.prepare(ctx, p, t); err != nil {
			return err
		}
	}
	return t.Settle(ctx)
}

// during measures what the quiet clients see while do runs.
func during(t *tested.Server, controllers *process.Child, q *quiet.Clients, do func() error) (p phase, err error) {
	var before, after [4]time.Duration // of the server, the controllers, the machine, this process
	sample := func(into *[4]time.Duration) error {
		var errs [4]error
		into[0], errs[0] = t.CPU()
		if controllers != nil {
			into[1], errs[1] = controllers.CPU()
		}
		into[2], errs[2] = measure.BusyCPU()
		into[3], errs[3] = measure.OwnCPU()
		return errors.Join(errs[:]...)
	}
	q.Take()
	begun := time.Now()
	if err := sample(&before); err != nil {
		return p, err
	}
	if err := do(); err != nil {
		return p, err
	}
	if err := sample(&after); err != nil {
		return p, err
	}
	p.took, p.clients = time.Since(begun), q.Take()
	p.server, p.controllers = after[0]-before[0], after[1]-before[1]
	p.others = after[2] - before[2] - p.server - p.controllers - (after[3] - before[3])
	return p, nil
}

// report prints a work's rows, and returns what the promise is broken by.
func report(w work, phases [3]phase) (broken []error) {
	for _, name := range quiet.Names() {
		failures := 0
		row := fmt.Sprintf("| %s | %s |", w.name, name)
		for _, p := range phases {
			m := p.clients[name]
			row += fmt.Sprintf(" %s / %s ms (%d) |", millis(m.Latency.Quantile(0.5)), millis(m.Latency.Quantile(0.99)), m.Latency.Count)
			if failures += m.Errors; m.Errors > 0 {
				fmt.Fprintf(os.Stderr, "%s: %s: %s\n", w.name, name, m.Last)
			}
		}
		ratio := float64(phases[1].clients[name].Latency.Quantile(0.99)) / float64(max(phases[0].clients[name].Latency.Quantile(0.99), time.Microsecond))
		fmt.Printf("%s %s | %d |\n", row, measure.Times(ratio), failures)
		if ratio > promised || failures > 0 {
			broken = append(broken, fmt.Errorf("%s: %s: p99 %s, %d errors", w.name, name, measure.Times(ratio), failures))
		}
	}
	row := fmt.Sprintf("| %s | processors: server, controllers, other programs |", w.name)
	for _, p := range phases {
		row += fmt.Sprintf(" %.2f, %.2f, %.2f in %v |", p.server.Seconds()/p.took.Seconds(), p.controllers.Seconds()/p.took.Seconds(), p.others.Seconds()/p.took.Seconds(), p.took.Round(100*time.Millisecond))
	}
	fmt.Println(row + " | |")
	return broken
}

func millis(d time.Duration) string { return measure.Number(float64(d) / float64(time.Millisecond)) }
