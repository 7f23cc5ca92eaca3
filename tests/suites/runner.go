package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// runner runs suites, one package at a time, in a folder of its own.
type runner struct {
	work string
	ours side
	real *side // nil if there is none
	keep bool
	out  io.Writer
	mark string // in the environment of everything that runs here

	downloads *downloads
}

// side is what envtest starts: Levelwire, or the real programs.
type side struct {
	name   string
	assets string // KUBEBUILDER_ASSETS
}

// newRunner makes the folders of a run, and what envtest starts on each side.
func newRunner(ctx context.Context, o options, out io.Writer) (*runner, error) {
	work, err := filepath.Abs(o.work)
	if err != nil {
		return nil, err
	}
	assets := filepath.Join(work, "assets")
	r := &runner{
		work: work, keep: o.keep, out: out,
		mark: fmt.Sprintf("LEVELWIRE_SUITES=%d.%d", os.Getpid(), time.Now().UnixNano()),
		ours: side{"levelwire", filepath.Join(assets, "levelwire")},
	}
	if o.judge != "" {
		r.real = &side{"kube-apiserver", filepath.Join(assets, "kube-apiserver")}
	}
	if err := r.prepare(ctx, o); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *runner) prepare(ctx context.Context, o options) (err error) {
	for _, folder := range []string{"assets", "binary", "log", "temporary"} {
		if err := os.MkdirAll(filepath.Join(r.work, folder), 0o755); err != nil {
			return fmt.Errorf("making a folder for what is fetched (-work names another one): %w", err)
		}
	}
	if err := r.fillOurs(ctx, o.levelwire); err != nil {
		return err
	}
	if r.real != nil {
		if err := r.fillReal(o.judge); err != nil {
			return err
		}
	}
	r.downloads, err = serveDownloads(ctx)
	return err
}

// fillOurs makes the stand-ins.
func (r *runner) fillOurs(ctx context.Context, program string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	fill := r.command(ctx, r.work, program, "envtest-assets", r.ours.assets)
	if said, err := fill.CombinedOutput(); err != nil {
		return fmt.Errorf("%s envtest-assets (make build makes this program): %w\n%s", program, err, said)
	}
	return nil
}

// fillReal makes a folder with the real programs. Kubectl, which few tests run, is the next one in
// PATH, as it is for the stand-ins.
func (r *runner) fillReal(binaries string) error {
	binaries, err := filepath.Abs(binaries)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.real.assets), os.MkdirAll(r.real.assets, 0o755)); err != nil {
		return err
	}
	for name, from := range map[string]string{"kube-apiserver": binaries, "etcd": binaries, "kubectl": r.ours.assets} {
		program := filepath.Join(from, name)
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("the real programs (make judge builds them, SUITES_JUDGE= does without): %w", err)
		}
		if err := os.Symlink(program, filepath.Join(r.real.assets, name)); err != nil {
			return err
		}
	}
	return nil
}

// close removes what was made to run suites. The logs stay.
func (r *runner) close() {
	if r.downloads != nil {
		r.downloads.close()
	}
	folders := []string{"assets", "binary", "temporary"}
	if !r.keep {
		folders = append(folders, "source")
	}
	for _, folder := range folders {
		r.remove(folder)
	}
}

// remove removes a file or a folder of the run.
func (r *runner) remove(path ...string) {
	if err := os.RemoveAll(filepath.Join(r.work, filepath.Join(path...))); err != nil {
		fmt.Fprintf(r.out, "left behind: %v\n", err)
	}
}

// suite fetches a suite and runs its packages.
func (r *runner) suite(ctx context.Context, s suite) (*result, error) {
	if err := enoughRoom(r.work); err != nil {
		return nil, err
	}
	if !r.keep {
		defer r.remove("source", s.Name)
	}
	if err := os.RemoveAll(filepath.Join(r.work, "log", s.Name)); err != nil {
		return nil, err
	}
	folder, err := r.fetch(ctx, &s)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(r.out, "  looking for its tests (the first time, what they import is fetched)\n")
	packages, err := r.packages(ctx, &s, folder)
	if err != nil {
		return nil, err
	}
	found := newResult(&s, len(packages), r.real != nil)
	for i, p := range packages {
		fmt.Fprintf(r.out, "  (%d/%d) %s: compiling", i+1, len(packages), p.name)
		if err := r.bothSides(ctx, &s, p, found); err != nil {
			fmt.Fprintln(r.out)
			return nil, err
		}
	}
	return found, nil
}

// bothSides compiles the tests of a package and runs them on Levelwire, and on the real programs.
func (r *runner) bothSides(ctx context.Context, s *suite, p testPackage, found *result) error {
	began := time.Now()
	binary, err := r.compile(ctx, s, p)
	if err != nil {
		return err
	}
	defer r.remove("binary", filepath.Base(binary))
	fmt.Fprintf(r.out, " took %.0f s\n", time.Since(began).Seconds())
	if err := r.oneSide(ctx, s, p, binary, r.ours, &found.Levelwire); err != nil || r.real == nil {
		return err
	}
	return r.oneSide(ctx, s, p, binary, *r.real, found.Real)
}

// oneSide runs a test binary, shows what comes of it, and adds it to a sum.
func (r *runner) oneSide(ctx context.Context, s *suite, p testPackage, binary string, side side, sum *sideSum) error {
	fmt.Fprintf(r.out, "    %-14s ", side.name)
	found, err := r.runPackage(ctx, s, p, binary, side)
	if err != nil {
		return err
	}
	sum.add(found)
	fmt.Fprintln(r.out, sentence(found.counts, found.took))
	for _, f := range found.failures {
		fmt.Fprintf(r.out, "      FAILED %s\n", f.name)
		for line := range strings.Lines(firstLines(f.said, 8)) {
			fmt.Fprintf(r.out, "        %s\n", strings.TrimRight(line, "\n"))
		}
	}
	if len(found.failures) > 0 {
		fmt.Fprintf(r.out, "      all of it: %s\n", found.log)
	}
	return nil
}

// command is a command of a suite: in a process group of its own, without the workspace and the
// flags of ours, and with a mark in its environment that what it starts inherits.
func (r *runner) command(ctx context.Context, folder, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "KUBECONFIG=", "TMPDIR="+filepath.Join(r.work, "temporary"), r.mark)
	inGroup(cmd)
	cmd.WaitDelay = 10 * time.Second // for a child that keeps the output open
	return cmd
}

// runToEnd runs a command, and ends what it has left running, and removes what it has left in the
// folder for temporary files.
func (r *runner) runToEnd(cmd *exec.Cmd) error {
	failed := runBound(cmd)
	endMarked(r.mark)
	temporary := filepath.Join(r.work, "temporary")
	return errors.Join(failed, os.RemoveAll(temporary), os.MkdirAll(temporary, 0o755))
}

func firstLines(text string, most int) string {
	lines := strings.SplitAfterN(text, "\n", most+1)
	return strings.Join(lines[:min(most, len(lines))], "")
}

// sentence says in one line what became of specs.
func sentence(c counts, took time.Duration) string {
	said := strconv.Itoa(c.specs()) + " specs: " + strconv.Itoa(c.Passed) + " passed"
	for _, part := range []struct {
		count int
		what  string
	}{{c.Failed, "failed"}, {c.LeftOut, "left out"}, {c.Skipped, "skipped by the suite"}} {
		if part.count > 0 {
			said += fmt.Sprintf(", %d %s", part.count, part.what)
		}
	}
	return fmt.Sprintf("%s, in %.1f s", said, took.Seconds())
}
