// Command e2e runs Kubernetes' conformance tests, as they are published (bin/e2e.test of
// `make bin/e2e.test`), on up to three sides, and writes what came of each test into the
// page docs/users/conformance.md:
//
//   - theirs: Kubernetes' controller manager and scheduler on our server;
//   - ours: our server, controllers and scheduler;
//   - judge: Kubernetes' controller manager and scheduler on kube-apiserver, which tells
//     whether a failure of theirs is our server's.
//
// Nodes are simulated by levelwire kubelet on every side: no container runs. What needs one is in
// containers.yaml, and is left out.
//
//	go run ./tests/e2e [-sides SIDE,SIDE] [-groups GROUP,GROUP] [-focus REGEXP]
//
// A group is what the tests of a special interest group (sig) are, and is divided into parts of 20 tests at most. Several parts
// run at once on one cluster, and the tests of each one after another; those that are called [Serial] or [Disruptive] run alone, after them.
//
// It exits with 1 if a test has failed that had passed on that side before, and with 2 if it was
// called wrongly, a side did not start or has ended, or the suite has not reported on some tests.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options is what the command line says.
type options struct {
	sides      string // names of sides, with commas
	groups     string // names of groups, with commas; empty: all
	focus      string // regular expression for names of tests; empty: all
	binaries   string // folder of e2e.test, and of what the sides are made of
	work       string // folder for files and logs of the sides, and for what the tests print
	results    string // file with the results so far
	page       string // file; empty: nothing is written
	rewrite    bool   // only the page is written, and nothing run
	containers bool   // also what needs containers
	atOnce     int    // parts of groups
	timeout    time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.sides, "sides", "theirs,ours", "names of sides, separated by commas: theirs, ours, judge")
	flag.StringVar(&o.groups, "groups", "", "names of groups, separated by commas: scheduling, auth, ... (all)")
	flag.StringVar(&o.focus, "focus", "", "a regular expression for a part of the names of tests (all)")
	flag.StringVar(&o.binaries, "binaries", "bin", "folder of e2e.test, levelwire, kubectl, and Kubernetes' components, which make test-conformance builds")
	flag.StringVar(&o.work, "work", "bin/conformance", "folder for the files and logs of the servers, and for what the tests print")
	flag.StringVar(&o.results, "results", "tests/e2e/results.json", "file with the results of earlier runs, which is brought up to date")
	flag.StringVar(&o.page, "page", "docs/users/conformance.md", "the page that is written from all results; empty: only what was run is printed, and nothing written")
	flag.BoolVar(&o.rewrite, "rewrite", false, "run nothing: write the page anew from the results so far, as after a change of containers.yaml")
	flag.BoolVar(&o.containers, "containers", false, "also run the tests that need containers; what comes of it is only printed")
	flag.IntVar(&o.atOnce, "at-once", 6, "how many parts of groups run at the same time")
	flag.DurationVar(&o.timeout, "timeout", 90*time.Minute, "how long the tests of a part may take: those that fail may wait for five minutes each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "e2e: %q is no flag: name groups with -groups, tests with -focus\n", flag.Arg(0))
		os.Exit(2)
	}
	worse, err := run(ctx, containersYAML, o, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	case worse:
		os.Exit(1)
	}
}

// run runs the chosen tests on the chosen sides, and reports whether one has failed that had passed before.
func run(ctx context.Context, text []byte, o options, out io.Writer) (worse bool, err error) {
	needs, err := parseNeeds(text)
	if err != nil {
		return false, err
	}
	record, err := readResults(o.results)
	if err != nil {
		return false, err
	}
	if o.rewrite {
		return false, os.WriteFile(o.page, []byte(page(record, needs)), 0o644)
	}
	sides, err := chooseSides(o.sides)
	if err != nil {
		return false, err
	}
	r, err := newRunner(o, out)
	if err != nil {
		return false, err
	}
	all, err := r.list(ctx)
	if err != nil {
		return false, err
	}
	if o.containers {
		o.page = ""
	}
	chosen, err := choose(all, needs, o)
	if err != nil {
		return false, err
	}
	record.keepOnly(all)
	keep := &keeper{record: record, needs: needs, o: o, run: describeRun(ctx)}
	for _, s := range sides {
		fmt.Fprintf(out, "%s (%s): %d tests of %s\n", s.name, s.what, len(chosen), strings.Join(groupsOf(chosen), ", "))
		if err := r.side(ctx, s, chosen, keep); err != nil {
			return keep.worse, fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(out, "%s: %s\n", s.name, record.count(s.name, chosen, needs).sentence())
	}
	return keep.worse, nil
}
