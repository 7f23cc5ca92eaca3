// Command hunt finds tests that fail by chance. It builds every test binary once,
// runs them over and over in random order, several for each processor at the same
// time, keeps the output of each failure, and ends with one line for each test that
// failed: how often, and in how many runs of its package.
//
//	go run ./tests/hunt -for 20m -at-once 3 -keep bin/hunt [-race] [PACKAGES]
//
// Without packages it takes those of all modules, also of those outside go.work. It
// exits with 1 if a test has failed, and with 2 if the time was too short for every
// binary to run once. An interrupt ends it as the end of its time does, but for the runs
// that are under way: they end, and do not count.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func main() {
	var h hunt
	var race bool
	flag.DurationVar(&h.duration, "for", 20*time.Minute, "how long runs are begun")
	flag.IntVar(&h.atOnce, "at-once", 3, "runs at the same time, for each processor")
	flag.StringVar(&h.folder, "keep", "bin/hunt", "folder for the test binaries, and for the output of failed runs")
	flag.Uint64Var(&h.seed, "seed", uint64(time.Now().UnixNano()), "seed of the order of runs")
	flag.BoolVar(&race, "race", false, "build with the race detector")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, err := h.run(ctx, race, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(2)
	}
	if found {
		os.Exit(1)
	}
}

// hunt is one hunt.
type hunt struct {
	duration time.Duration
	atOnce   int // for each processor
	folder   string
	seed     uint64

	begun time.Time
	mu    sync.Mutex
	tally tally
}

// run builds and runs the tests, and reports whether one has failed.
func (h *hunt) run(ctx context.Context, race bool, packages []string) (failed bool, err error) {
	if h.folder, err = filepath.Abs(h.folder); err != nil {
		return false, err
	}
	if err := h.clear(); err != nil {
		return false, err
	}
	fmt.Println("building the test binaries: minutes, if there are many")
	binaries, err := build(ctx, filepath.Join(h.folder, "binaries"), race, packages)
	if err != nil {
		return false, err
	}
	if len(binaries) == 0 {
		return false, fmt.Errorf("no tests in %q", packages)
	}
	workers := h.atOnce * runtime.GOMAXPROCS(0)
	fmt.Printf("running %d test binaries for %v, %d at a time, seed %d\n", len(binaries), h.duration, workers, h.seed)
	h.begun = time.Now()
	h.runAll(ctx, binaries, workers)
	fmt.Print(h.tally.summary(time.Since(h.begun), h.seed))
	if h.tally.failed > 0 {
		return true, nil
	}
	return false, h.tally.unfinished(ctx, binaries)
}

// clear makes the folder, without the failures of the hunt before.
func (h *hunt) clear() error {
	before, err := filepath.Glob(filepath.Join(h.folder, "failure-*.log"))
	if err != nil {
		return err
	}
	for _, file := range before {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return os.MkdirAll(h.folder, 0o755)
}

// runAll runs binaries until the time is over, or ctx ends.
func (h *hunt) runAll(ctx context.Context, binaries []binary, workers int) {
	next := make(chan binary)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for b := range next {
				h.runOne(ctx, b)
			}
		})
	}
	group.Go(func() {
		defer close(next)
		h.deal(ctx, binaries, next)
	})
	group.Wait()
}

// deal sends all binaries in random order, again and again.
func (h *hunt) deal(ctx context.Context, binaries []binary, next chan<- binary) {
	random := rand.New(rand.NewPCG(h.seed, 0))
	over := time.NewTimer(h.duration)
	defer over.Stop()
	progress := time.NewTicker(30 * time.Second)
	defer progress.Stop()
	for {
		for _, at := range random.Perm(len(binaries)) {
			for sent := false; !sent; {
				select {
				case next <- binaries[at]:
					sent = true
				case <-progress.C:
					h.showProgress()
				case <-over.C:
					fmt.Println("the time is over; waiting for the runs that have begun")
					return
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

func (h *hunt) showProgress() {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Printf("%v of %v: %d runs, %d failed\n", time.Since(h.begun).Round(time.Second), h.duration, h.tally.runs, h.tally.failed)
}

// runOne runs a binary and keeps what it printed if it fails.
func (h *hunt) runOne(ctx context.Context, b binary) {
	output, err := b.run(ctx)
	if ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.tally.passed(b.pkg)
		return
	}
	tests := failedTests(output, err)
	file := filepath.Join(h.folder, fmt.Sprintf("failure-%d.log", h.tally.failed+1))
	if err := os.WriteFile(file, output, 0o644); err != nil {
		file = err.Error()
	}
	h.tally.failedIn(b.pkg, tests, file)
	fmt.Printf("FAILED %s %v: %s\n", b.pkg, tests, file)
}
