// Command rerun runs go test through gotestsum and tells a flaky test from a
// broken one: what fails is run again, and what passes then is reported and does
// not fail the run.
//
//	rerun -gotestsum PATH -report FOLDER -- [go test's flags, as -name=value] PACKAGES
//
// A failed test runs again alone, at most twice; gotestsum does that. Rerun adds
// what gotestsum lacks (v1.13.0): when a test binary panics or runs into its time
// limit, or any package prints what looks so, gotestsum runs nothing again, and
// when a TestMain fails, it runs no test and calls that a success. Such a package
// runs again as a whole, once, and what fails in it alone, once.
//
// Rerun appends what it found to the files "flaky" and "failed" in FOLDER, and to
// "skipped" which tests did not run, and why. It exits with 1 if something failed
// every time, or if more than mostFlaky tests failed at least once, and with 2 if
// there is no test with the names that were asked for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	gotestsum := flag.String("gotestsum", "gotestsum", "the gotestsum to run")
	folder := flag.String("report", "", "folder of the files flaky and failed")
	flag.Parse()
	if *folder == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: rerun -gotestsum PATH -report FOLDER -- [go test's flags, as -name=value] PACKAGES")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	verdict, err := run(command{gotestsum: *gotestsum}.test(ctx), flag.Args())
	if err == nil {
		err = verdict.write(*folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rerun:", err)
		os.Exit(2)
	}
	if verdict.red() {
		os.Exit(1)
	}
}

// tester runs the tests of packages once, and each that fails up to reruns times
// alone. It returns the events of go test -json. An unsuccessful run is told apart
// by its events; err says that there are none to trust.
type tester func(flags, packages []string, reruns int) (events []event, failed bool, err error)

// How often a test that failed runs again alone, and one of a package that ran again as a whole.
const (
	reruns      = 2
	rerunsAgain = 1
)

// command is gotestsum as a program.
type command struct{ gotestsum string }

func (c command) test(ctx context.Context) tester {
	return func(flags, packages []string, reruns int) ([]event, bool, error) {
		scratch, err := os.MkdirTemp("", "rerun")
		if err != nil {
			return nil, false, err
		}
		defer func() { _ = os.RemoveAll(scratch) }() // what is left is in the system's temporary folder
		record := filepath.Join(scratch, "events.json")
		args := []string{
			"--format=standard-quiet",
			"--jsonfile=" + record,
			fmt.Sprintf("--rerun-fails=%d", reruns),
			fmt.Sprintf("--rerun-fails-max-failures=%d", mostFlaky),
			"--packages=" + strings.Join(packages, " "),
			"--",
		}
		cmd := exec.CommandContext(ctx, c.gotestsum, append(args, flags...)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		// gotestsum hands the signal on to go test and ends after it.
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		ended := cmd.Run()
		if ctx.Err() != nil {
			return nil, false, errors.New("interrupted")
		}
		var exit *exec.ExitError
		if ended != nil && !errors.As(ended, &exit) {
			return nil, false, ended
		}
		file, err := os.Open(record)
		if err != nil {
			return nil, false, errors.Join(ended, err)
		}
		defer file.Close()
		events, err := readEvents(file)
		return events, ended != nil, err
	}
}

// run tests the packages that args end with, and once more, as a whole, those
// with a failure that a rerun of a single test cannot decide.
func run(test tester, args []string) (verdict, error) {
	flags, packages := split(args)
	if len(packages) == 0 {
		return verdict{}, errors.New("name the packages after the flags")
	}
	events, failed, err := test(flags, packages, reruns)
	if err != nil {
		return verdict{}, err
	}
	first := packageRuns(events)
	if !failed && slices.ContainsFunc(flags, isRun) && !slices.ContainsFunc(first, (*packageRun).hasTests) {
		return verdict{}, fmt.Errorf("no test of %s has the name asked for with %s", strings.Join(packages, " "), strings.Join(flags, " "))
	}
	found := judge(first, nil)
	if failed && len(found.failures) == 0 {
		return verdict{}, errors.New("go test failed without an event that says why; its output is above")
	}
	again := found.undecided()
	if len(again) == 0 {
		return found, nil
	}
	fmt.Printf("\nrunning again as a whole: %s\n", strings.Join(again, " "))
	events, _, err = test(flags, again, rerunsAgain)
	if err != nil {
		return verdict{}, err
	}
	return judge(first, packageRuns(events)), nil
}

func isRun(flag string) bool { return strings.HasPrefix(flag, "-run=") }

// split separates go test's flags from the packages, which come last.
func split(args []string) (flags, packages []string) {
	isPackage := func(arg string) bool { return !strings.HasPrefix(arg, "-") }
	at := slices.IndexFunc(args, isPackage)
	if at < 0 {
		return args, nil
	}
	return args[:at], args[at:]
}
