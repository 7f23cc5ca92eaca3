package conformance

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options say which guarantees are tried, and how.
type Options struct {
	// Run chooses guarantees by name. Nil is all.
	Run *regexp.Regexp
	// Slow includes checks that take minutes.
	Slow bool
	// Parallel is how many checks run at a time, each in a namespace of its
	// own. Default 8.
	Parallel int
	// Done, if set, is called for each result as it comes, by one goroutine at
	// a time.
	Done func(Result)
}

const defaultParallel = 8

// Times that one check may take, and one that is slow. They only make sure that
// it ends: each of its requests has a limit of its own.
const (
	checkTimeout     = 12 * time.Minute
	slowCheckTimeout = 15 * time.Minute
)

// Run tries the guarantees against the server that config reaches. It makes
// namespaces named levelwire-verify-... and removes them, also when ctx ends
// early; then the guarantees that it did not come to are reported as skipped.
// The error says that nothing could be tried, or what was left behind; the
// report is complete in the latter case.
func Run(ctx context.Context, config *rest.Config, opts Options) (*Report, error) {
	chosen, err := choose(opts)
	if err != nil {
		return nil, err
	}
	t, err := connect(config)
	if err != nil {
		return nil, err
	}
	defer t.close()
	r := &runner{server: t, name: runName(), opts: opts}
	r.scenario = sync.OnceValues(r.record)
	r.ctx = ctx
	return r.run(ctx, chosen)
}

// choose returns the guarantees that opts ask for, in their order.
func choose(opts Options) ([]Guarantee, error) {
	all := Guarantees()
	if err := validate(all); err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(g Guarantee) bool {
		return opts.Run != nil && !opts.Run.MatchString(g.Name)
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no guarantee matches %q", opts.Run)
	}
	return chosen, nil
}

// runner is one run.
type runner struct {
	ctx      context.Context // of the run: what the shared recording lives by
	server   *testedServer
	name     string
	opts     Options
	scenario func() (*recording, error)

	mu         sync.Mutex // guards what follows
	namespaces []*Env     // what to remove in the end, if it is there
}

func (r *runner) run(ctx context.Context, chosen []Guarantee) (*Report, error) {
	begin := time.Now()
	report := &Report{Server: r.server.base, Results: make([]Result, len(chosen))}
	parallel := r.opts.Parallel
	if parallel < 1 {
		parallel = defaultParallel
	}
	queue := make(chan int)
	var workers sync.WaitGroup
	var failure error
	var reporting sync.Mutex
	for i := range min(parallel, len(chosen)) {
		workers.Go(func() {
			namespace, err := r.namespace(ctx, strconv.Itoa(i))
			for n := range queue {
				var result Result
				switch {
				case err == nil || ctx.Err() != nil:
					result = r.try(ctx, namespace, chosen[n])
				case undecided(err):
					result = chosen[n].result(NotDecided, err.Error())
				default:
					reporting.Lock()
					failure = err
					reporting.Unlock()
					continue
				}
				reporting.Lock()
				report.Results[n] = result
				if r.opts.Done != nil {
					r.opts.Done(result)
				}
				reporting.Unlock()
			}
		})
	}
	for _, n := range slowestFirst(chosen) {
		queue <- n
	}
	close(queue)
	workers.Wait()
	cleanup := r.cleanup(ctx)
	if failure != nil {
		return nil, failure
	}
	report.Duration = time.Since(begin)
	return report, cleanup
}

// slowestFirst returns the order to begin in: the stream guarantees, which
// share one long recording, and those marked slow should not come last.
func slowestFirst(chosen []Guarantee) []int {
	var first, rest []int
	recorded := false
	for i, g := range chosen {
		stream := slices.ContainsFunc(streamGuarantees, func(s Guarantee) bool { return s.Name == g.Name })
		if g.Slow || stream && !recorded {
			first = append(first, i)
			recorded = recorded || stream
			continue
		}
		rest = append(rest, i)
	}
	return append(first, rest...)
}

// namespace makes a namespace for one worker, and measures the pace of the
// server in it. It will be removed even if the answer to its creation never
// arrives.
func (r *runner) namespace(ctx context.Context, suffix string) (string, error) {
	e := newEnv(ctx, r.server, r.name+"-"+suffix)
	r.mu.Lock()
	r.namespaces = append(r.namespaces, e)
	r.mu.Unlock()
	err := e.prepareNamespace()
	if err == nil {
		e.measure(ctx)
		err = e.empty(ctx)
	}
	return e.namespace, err
}

// cleanup removes the namespaces, even if ctx has ended.
func (r *runner) cleanup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.server.pace.cleanupLimit())
	defer cancel()
	var group sync.WaitGroup
	errs := make([]error, len(r.namespaces))
	for i, e := range r.namespaces {
		group.Go(func() { errs[i] = e.removeNamespace(ctx) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("cleaning up: %w", err)
		}
	}
	return nil
}

// record makes the history that the stream guarantees share.
func (r *runner) record() (*recording, error) {
	ctx, cancel := context.WithTimeout(r.ctx, checkTimeout)
	defer cancel()
	namespace, err := r.namespace(ctx, "stream")
	if err != nil {
		return nil, err
	}
	e := newEnv(ctx, r.server, namespace)
	s := standardScenario()
	recorded, err := s.record(ctx, e)
	cleanCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.server.pace.cleanupLimit())
	defer stop()
	cleaned := e.empty(cleanCtx)
	switch {
	case err != nil:
		return nil, err
	case undecided(cleaned):
		// What was recorded can still show that a guarantee is broken.
		if recorded.slow == nil {
			recorded.slow = fmt.Errorf("cleaning up: %w", cleaned)
		}
		return recorded, nil
	}
	return recorded, cleaned
}

// try runs one check in a goroutine that it may end.
func (r *runner) try(ctx context.Context, namespace string, g Guarantee) Result {
	switch {
	case g.Slow && !r.opts.Slow:
		return g.result(Skip, "it takes more than a minute: ask for it with --slow")
	case ctx.Err() != nil:
		return g.result(Skip, interrupted)
	}
	limit := checkTimeout
	if g.Slow {
		limit = slowCheckTimeout
	}
	checkCtx, cancel := context.WithTimeout(ctx, limit)
	e := newEnv(checkCtx, r.server, namespace)
	e.scenario = func(context.Context) (*recording, error) { return r.scenario() }
	begin := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			// A check that panics over an unforeseen answer must not
			// keep the run from cleaning up.
			if p := recover(); p != nil {
				e.verdict, e.reason = Fail, fmt.Sprintf("the check broke: %v\n%s", p, debug.Stack())
			}
		}()
		g.check(e)
		e.verdict = Pass
	}()
	<-done
	cancel()
	result := g.result(e.verdict, e.reason)
	if e.verdict == Fail || e.verdict == NotDecided {
		result.Evidence = e.evidence
		if ctx.Err() != nil {
			result = g.result(Skip, interrupted)
		}
	}
	result.Duration = time.Since(begin)
	cleanCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.server.pace.cleanupLimit())
	defer stop()
	if err := e.empty(cleanCtx); err != nil && result.Verdict == Pass {
		result.Verdict, result.Reason = Fail, fmt.Sprintf("cleaning up: %v", err)
		if undecided(err) {
			result.Verdict = NotDecided
		}
	}
	return result
}

// interrupted is why guarantees were skipped when the run's context has ended.
const interrupted = "the run was interrupted"

func (g *Guarantee) result(v Verdict, reason string) Result {
	return Result{Name: g.Name, Sentence: g.Sentence, Source: g.Source, Verdict: v, Reason: reason}
}
