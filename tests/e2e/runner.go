package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

// runner runs parts of Kubernetes' suite on sides, one side at a time.
type runner struct {
	binaries string
	work     string
	atOnce   int
	timeout  time.Duration

	printing sync.Mutex
	out      io.Writer
}

func newRunner(o options, out io.Writer) (*runner, error) {
	binaries, err := filepath.Abs(o.binaries)
	if err != nil {
		return nil, err
	}
	work, err := filepath.Abs(o.work)
	if err != nil {
		return nil, err
	}
	return &runner{binaries: binaries, work: work, atOnce: max(1, o.atOnce), timeout: o.timeout, out: out}, nil
}

func (r *runner) printf(format string, args ...any) {
	r.printing.Lock()
	defer r.printing.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *runner) suite() string { return filepath.Join(r.binaries, "e2e.test") }

// list asks the suite for the names of all conformance tests, and returns them sorted.
func (r *runner) list(ctx context.Context) ([]testName, error) {
	said, err := exec.CommandContext(ctx, r.suite(), "--list-conformance-tests").Output()
	if err != nil {
		return nil, fmt.Errorf("%s (make bin/e2e.test builds it): %w", r.suite(), err)
	}
	return parseList(said)
}

// parseList reads the suite's list of conformance tests.
func parseList(text []byte) (all []testName, err error) {
	var list []struct {
		Codename string `json:"codename"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading the list of conformance tests: %w", err)
	}
	for _, test := range list {
		all = append(all, newTestName(test.Codename))
	}
	if len(all) == 0 {
		return nil, errors.New("the suite lists no conformance tests")
	}
	slices.Sort(all)
	return all, nil
}

// part is what one process of the suite runs: tests of one group, on a cluster.
type part struct {
	name  string // of files
	group string
	tests []testName
}

// mostInPart is how many tests a part has at most that runs beside others. They mostly wait, one after another.
const mostInPart = 20

// partsOf divides tests into those parts that may run at the same time, and those that run alone.
func partsOf(tests []testName) (together, alone []part) {
	for _, group := range groupsOf(tests) {
		var shared, single []testName
		for _, n := range tests {
			switch {
			case n.group() != group:
			case n.alone():
				single = append(single, n)
			default:
				shared = append(shared, n)
			}
		}
		together = append(together, divide(group, shared)...)
		if len(single) > 0 {
			alone = append(alone, part{group + "-alone", group, single})
		}
	}
	// What takes longest begins first, so that nothing waits for it at the end.
	slices.SortStableFunc(together, func(a, b part) int { return len(b.tests) - len(a.tests) })
	return together, alone
}

// divide makes parts of about the same size of a group's tests. Neighbours in the order of their names, which may all be
// slow as those of CronJobs are, come into different parts.
func divide(group string, tests []testName) []part {
	parts := make([]part, (len(tests)+mostInPart-1)/mostInPart)
	for i := range parts {
		parts[i] = part{name: group, group: group}
		if len(parts) > 1 {
			parts[i].name = fmt.Sprintf("%s-%d", group, i+1)
		}
	}
	for i, n := range tests {
		of := &parts[i%len(parts)]
		of.tests = append(of.tests, n)
	}
	return parts
}

// patience is for a machine that is busy with tests: with the defaults, 15 s and 10 s, components lose their leases.
var patience = []string{"--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s"}

// side starts a side, runs tests on it, and stops it. Its logs stay.
func (r *runner) side(ctx context.Context, s side, tests []testName, keep *keeper) error {
	folder := filepath.Join(r.work, s.name)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	c := cluster.New(s.name, r.binaries, folder)
	c.RestartComponents, c.ComponentFlags = true, patience
	defer c.Stop()
	if err := s.start(ctx, c); err != nil {
		return err
	}
	if err := c.AwaitNodes(ctx); err != nil {
		return err
	}
	err := r.all(ctx, s, c, folder, tests, keep)
	for _, p := range c.Components() {
		if _, exits := p.Runs(); len(exits) > 0 {
			r.printf("  %s: %s has ended %d times and was started again: %v\n", s.name, p.Name(), len(exits), exits)
		}
	}
	return err
}

// all runs tests on a cluster. It goes on without the parts that the suite has not reported on, and returns an error that
// names them.
func (r *runner) all(ctx context.Context, s side, c *cluster.Cluster, folder string, tests []testName, keep *keeper) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching.Go(func() { cancel(c.AwaitFailure(ctx)) }) // tests would wait long for what has ended
	var mu sync.Mutex
	var unreported error
	run := func(ctx context.Context, p part) error {
		began := time.Now()
		found, err := r.part(ctx, c.AdminKubeconfig(), folder, p)
		if ended := c.Failure(); ended != nil {
			return ended // what tests say of a server that has ended is not kept
		}
		if missing := new(noReport); errors.As(err, &missing) {
			r.printf("  %s %s: %v\n", s.name, p.name, missing)
			mu.Lock()
			defer mu.Unlock()
			unreported = errors.Join(unreported, missing)
			return nil
		}
		if err != nil {
			return err
		}
		took := time.Since(began)
		r.report(s.name, p, found, took)
		return keep.add(s.name, p, found, took)
	}
	together, alone := partsOf(tests)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(r.atOnce)
	for _, p := range together {
		group.Go(func() error { return run(groupCtx, p) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, p := range alone {
		if err := run(ctx, p); err != nil {
			return err
		}
	}
	return unreported
}

// noReport is the error of a suite that has ended without a report: what became of its tests is not known.
type noReport struct {
	log   string
	ended error
}

func (e *noReport) Error() string {
	return fmt.Sprintf("the suite ended without a report (%v): see %s", e.ended, e.log)
}

// part runs the suite for some tests on the cluster of a kubeconfig, and returns what came of each.
func (r *runner) part(ctx context.Context, kubeconfig, folder string, p part) (map[testName]outcome, error) {
	file := filepath.Join(folder, "e2e-"+p.name)
	if err := os.MkdirAll(file, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(file + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	report := file + ".json"
	cmd := exec.CommandContext(ctx, r.suite(), r.flags(kubeconfig, file, report, p.tests)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, file
	// The tests find kubectl by its flag, but some start it by its name. What it caches of a server is for this one only.
	cmd.Env = append(cmd.Environ(), "PATH="+r.binaries+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig,
		"KUBECACHEDIR="+filepath.Join(file, "kubectl"))
	ended := childprocess.RunTests(cmd)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var exit *exec.ExitError
	if ended != nil && !errors.As(ended, &exit) {
		return nil, ended
	}
	text, err := os.ReadFile(report)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &noReport{log.Name(), ended}
	}
	if err != nil {
		return nil, err
	}
	return readReport(text, p.tests, "it did not run")
}

// flags are those of the suite. What a failure leaves is not dumped: a dump asks for the logs of containers,
// of which there are none.
func (r *runner) flags(kubeconfig, folder, report string, tests []testName) []string {
	flags := []string{
		"--kubeconfig=" + kubeconfig, "--kubectl-path=" + filepath.Join(r.binaries, "kubectl"), "--provider=skeleton",
		"--e2e-output-dir=" + folder, "--dump-logs-on-failure=false", "--disable-log-dump",
		"--allowed-not-ready-nodes=-1", "--minStartupPods=-1", "--node-schedulable-timeout=2m",
		"--ginkgo.no-color", "--ginkgo.seed=1", "--ginkgo.v", "--ginkgo.timeout=" + r.timeout.String(), "--ginkgo.json-report=" + report,
		"--test.timeout=0",
	}
	for _, n := range tests {
		flags = append(flags, "--ginkgo.focus="+n.focus())
	}
	return flags
}

// report prints what came of a part.
func (r *runner) report(side string, p part, found map[testName]outcome, took time.Duration) {
	var lines strings.Builder
	good := 0
	for _, n := range p.tests {
		if o := found[n]; o.state == passed {
			good++
		} else {
			fmt.Fprintf(&lines, "    %s %s\n      %s\n", strings.ToUpper(o.state), n.title(), o.why)
		}
	}
	r.printf("  %s %s: %d of %d passed, in %.0f s\n%s", side, p.name, good, len(p.tests), took.Seconds(), lines.String())
}
