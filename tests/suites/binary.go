package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// packageTimeout is how long the tests of a package may take before they are ended: on the real
// kube-apiserver, the longest ones take minutes.
const packageTimeout = 30 * time.Minute

// compile builds the test binary of a package. Debug information is left out: nothing in a test
// needs it, and a linker takes long for it. Paths stay as they are, since many suites find their
// files by where their sources were. Vet, for which go test reads all that is imported, is the
// business of those projects.
func (r *runner) compile(ctx context.Context, s *suite, p testPackage) (binary string, err error) {
	binary = filepath.Join(r.work, "binary", s.Name+".test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w -X " + indexVariable + "=" + r.downloads.url, "-o", binary}
	if s.Tags != "" {
		args = append(args, "-tags="+s.Tags)
	}
	if _, err := r.goCommand(ctx, p.folder, append(args, ".")...); err != nil {
		return "", fmt.Errorf("compiling the tests of %s: %w\n  %s", p.path, err, whatToDo(err.Error()))
	}
	return binary, nil
}

// outcome is what came of a package on one side.
type outcome struct {
	counts
	failures []failure
	took     time.Duration
	log      string // file
}

// runPackage runs a test binary on one side, and ends what it leaves running.
func (r *runner) runPackage(ctx context.Context, s *suite, p testPackage, binary string, side side) (*outcome, error) {
	found := &outcome{log: filepath.Join(r.work, "log", s.Name, strings.ReplaceAll(strings.TrimPrefix(p.name, "./"), "/", "-")+"."+side.name+".log")}
	events := strings.TrimSuffix(found.log, ".log") + ".json"
	report := filepath.Join(r.work, "binary", "ginkgo.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(found.log), 0o755), os.RemoveAll(report)); err != nil {
		return nil, err
	}
	output, err := os.Create(events)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd := r.command(ctx, p.folder, "go", append([]string{"tool", "test2json", "-t", binary}, flagsOf(s, p, report)...)...)
	for name, value := range s.Environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "KUBEBUILDER_ASSETS="+side.assets)
	cmd.Stdout, cmd.Stderr = output, output
	began := time.Now()
	failed := r.runToEnd(cmd)
	found.took = time.Since(began)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var exit *exec.ExitError
	if failed != nil && !errors.As(failed, &exit) {
		return nil, fmt.Errorf("running the tests of %s: %w", p.path, failed)
	}
	return found, found.read(s, p, events, report, failed)
}

// flagsOf are the flags of a package's test binary.
func flagsOf(s *suite, p testPackage, report string) []string {
	flags := []string{"-test.v=test2json", "-test.timeout=" + packageTimeout.String()}
	specs, tests, _ := s.leavesOut(p.name)
	if len(tests) > 0 {
		flags = append(flags, "-test.skip="+strings.Join(tests, "|"))
	}
	if !p.ginkgo {
		return flags
	}
	flags = append(flags, "-ginkgo.no-color", "-ginkgo.seed=1", "-ginkgo.json-report="+report)
	for _, spec := range specs {
		flags = append(flags, "-ginkgo.skip="+spec)
	}
	return flags
}

// read counts what the events and ginkgo's report say, and writes the log for people.
func (o *outcome) read(s *suite, p testPackage, events, report string, failed error) error {
	text, err := os.ReadFile(events)
	if err != nil {
		return err
	}
	specs, err := os.ReadFile(report)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	output, err := o.count(text, specs, failed)
	if err != nil {
		return err
	}
	_, tests, _ := s.leavesOut(p.name)
	o.LeftOut += len(tests) // go test does not name what it was told to skip
	return errors.Join(os.WriteFile(o.log, output, 0o644), os.Remove(events))
}

// count counts Go tests and specs, and returns what the binary printed. A binary that ended
// badly has failed, also if no test says so.
func (o *outcome) count(events, specs []byte, failed error) (output []byte, err error) {
	tests, err := readTests(events)
	if err != nil {
		return nil, err
	}
	o.counts, o.failures = tests.count()
	if specs != nil {
		c, failures, err := countSpecs(specs)
		if err != nil {
			return nil, err
		}
		o.add(c)
		o.failures = append(o.failures, failures...)
	}
	if failed != nil && o.Failed == 0 {
		o.Failed++
		o.failures = append(o.failures, failure{"the test binary", fmt.Sprintf("%v\n%s", failed, lastLines(tests.output.String(), 20))})
	}
	return []byte(tests.output.String()), nil
}
