// Command suites runs published test suites of other projects, unmodified, on Levelwire.
// They are suites that start etcd and kube-apiserver with envtest; here these are the
// stand-ins of levelwire envtest-assets. What came of it is the page docs/users/suites.md.
//
//	go run ./tests/suites [-suites NAME,NAME] [-judge FOLDER]
//
// suites.yaml is the table: which module, which version, which packages, and which specs
// are left out and why. A suite is fetched by its module and version with the go command,
// copied out of the module cache, compiled with the dependencies of its own go.mod, and
// run one package after another; then what was copied and built is removed. With -judge
// each package runs a second time, on the real kube-apiserver and etcd of that folder.
//
// It exits with 1 if a spec that the table does not leave out has failed on Levelwire, or
// if a suite could not be fetched or compiled, and with 2 if it was called wrongly.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// options is what the command line says.
type options struct {
	names     string // of suites, with commas; empty: all
	levelwire string // the program levelwire
	judge     string // folder of the real kube-apiserver and etcd; empty: none
	work      string // folder for what is fetched and built, and for logs
	results   string // file with the results so far
	page      string // file; empty: none is written
	all       bool   // also what the table leaves out
	keep      bool   // what was fetched and built
}

func main() {
	var o options
	flag.StringVar(&o.names, "suites", "", "names of suites, separated by commas (all)")
	flag.StringVar(&o.levelwire, "levelwire", "bin/levelwire", "the program levelwire")
	flag.StringVar(&o.judge, "judge", "", "a folder with the real kube-apiserver and etcd, on which each package runs, too")
	flag.StringVar(&o.work, "work", "bin/suites", "folder for what is fetched and built, and for the logs")
	flag.StringVar(&o.results, "results", "tests/suites/results.json", "file with the results of earlier runs, which is brought up to date")
	flag.StringVar(&o.page, "page", "docs/users/suites.md", "the page that is written from all results; empty: only what was run is printed, and nothing written")
	flag.BoolVar(&o.all, "all", false, "also run the specs and packages that the table leaves out; what comes of it is only printed")
	flag.BoolVar(&o.keep, "keep", false, "keep what was fetched")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "suites: %q is no flag: name suites with -suites\n", flag.Arg(0))
		os.Exit(2)
	}
	failed, err := run(ctx, tableYAML, o, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

// run runs the suites that were chosen, and reports whether one has failed on Levelwire.
func run(ctx context.Context, table []byte, o options, out io.Writer) (failed bool, err error) {
	all, err := parseTable(table)
	if err != nil {
		return false, err
	}
	chosen, err := all.choose(o.names)
	if err != nil {
		return false, err
	}
	if o.all {
		o.page = ""
		chosen = chosen.withNothingLeftOut()
	}
	record, err := readResults(o.results)
	if err != nil {
		return false, err
	}
	runner, err := newRunner(ctx, o, out)
	if err != nil {
		return false, err
	}
	defer runner.close()
	for i, s := range chosen {
		fmt.Fprintf(out, "[%d/%d] %s: %s %s\n", i+1, len(chosen), s.Name, s.Module, s.Version)
		found, err := runner.suite(ctx, s)
		if ctx.Err() != nil {
			return true, fmt.Errorf("interrupted in %s: what was run before is in %s", s.Name, o.results)
		}
		if err != nil {
			fmt.Fprintf(out, "  FAILED: %v\n", err)
			failed = true
			continue
		}
		failed = failed || found.Levelwire.Failed > 0
		fmt.Fprintf(out, "  %s\n", found.sentence())
		if o.page == "" {
			continue
		}
		record.add(s.Name, found)
		if err := record.write(o.results); err != nil {
			return failed, err
		}
		if err := os.WriteFile(o.page, []byte(page(all, record)), 0o644); err != nil {
			return failed, fmt.Errorf("writing the page: %w", err)
		}
	}
	return failed, nil
}
