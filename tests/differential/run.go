package differential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// comparisonRun is one comparison of two servers.
type comparisonRun struct {
	ours      *side
	judge     func() (*side, error) // starts it, once
	recording *recording
	declared  declarations
	log       io.Writer
	workers   int

	objects map[string]*object // by kind and base
}

func key(k *kind, base string) string { return k.String() + " " + base }

// selection is what is asked.
type selection struct {
	seed  uint64
	n     int      // requests; 0: every one with a single field
	kinds []string // as matchesKind takes them; empty: all
	verbs []string
	only  string         // the name of the one request; empty: all
	match *regexp.Regexp // of their names; nil: all
	// pairs are topics of which every request sets two fields; empty: one field comes first.
	pairs []*regexp.Regexp
	// fieldValidation: of fields that are unknown or stand twice.
	fieldValidation bool
}

// load reads what the judge serves and the objects of each kind, from the recording as far
// as that has it.
func (c *comparisonRun) load(ctx context.Context, kinds, verbs []string) error {
	r := c.recording
	if r.Catalog == nil {
		judge, err := c.judge()
		if err != nil {
			return err
		}
		if r.Catalog, err = judge.catalog(ctx); err != nil {
			return err
		}
	}
	c.objects = map[string]*object{}
	list, err := givenObjects(r.Catalog)
	if err != nil {
		return err
	}
	for _, o := range list {
		if len(kinds) > 0 && !matchesKind(kinds, o.kind.String()) {
			continue
		}
		r.use(o)
		c.objects[key(o.kind, o.base)] = o
		if o.base != small {
			continue
		}
		if err := c.loadGrown(ctx, o, verbs); err != nil {
			return err
		}
	}
	if len(kinds) == 0 {
		for _, k := range r.Catalog.creatable() {
			if c.objects[key(k, small)] == nil {
				fmt.Fprintf(c.log, "not asked about: %v, of which the folder objects has no object\n", k)
			}
		}
	}
	for _, name := range kinds {
		if !slices.ContainsFunc(slices.Collect(maps.Values(c.objects)), func(o *object) bool { return matchesKind([]string{name}, o.kind.String()) }) {
			return fmt.Errorf("no kind is called %q, or the folder objects has no object of it", name)
		}
	}
	return nil
}

// loadGrown adds what the judge has let grow of a small object.
func (c *comparisonRun) loadGrown(ctx context.Context, o *object, verbs []string) (err error) {
	if c.objects[key(o.kind, full)], err = c.full(ctx, o); err != nil {
		return err
	}
	if o.kind.hasStatus && (slices.Contains(verbs, updateStatus) || slices.Contains(verbs, statuses)) {
		c.objects[key(o.kind, withStatus)], err = c.status(ctx, o)
	}
	return err
}

// use forgets the answers about an object that is another one now, and about those that grew of it.
func (r *recording) use(o *object) {
	name := o.kind.String()
	if literal(r.Objects[o.base][name]) == literal(o.value) {
		return
	}
	r.set(o)
	bases := []string{o.base}
	if o.base == small {
		bases = append(bases, full, withStatus)
		delete(r.Objects[full], name)
		delete(r.Objects[withStatus], name)
	}
	for request := range r.Answers {
		parsed, err := parseRequest(r.Catalog, request)
		if err != nil || parsed.kind == o.kind && slices.Contains(bases, parsed.base) {
			delete(r.Answers, request)
		}
	}
}

// full returns the full object of a kind.
func (c *comparisonRun) full(ctx context.Context, o *object) (*object, error) {
	return c.grown(full, o, func(judge *side) (*object, int, error) {
		asked := 0
		grown, err := grow(ctx, func(ctx context.Context, k *kind, value map[string]any) (*answer, error) {
			asked++
			return judge.do(ctx, http.MethodPost, k.path(namespace)+"?dryRun=All", asJSON, value)
		}, o)
		return grown, asked, err
	})
}

// status returns the object of a kind that has a full status.
func (c *comparisonRun) status(ctx context.Context, o *object) (*object, error) {
	if o.kind.String() == "v1 Service" { // only one with a load balancer has most of it
		spec, _ := o.value["spec"].(map[string]any)
		spec = with(with(spec, "type", "LoadBalancer"), "allocateLoadBalancerNodePorts", false)
		o = &object{o.kind, o.base, with(o.value, "spec", spec)}
	}
	return c.grown(withStatus, o, func(judge *side) (*object, int, error) {
		if err := judge.store(ctx, o); err != nil {
			return nil, 0, err
		}
		defer func() { _ = judge.remove(ctx, o) }()
		asked := 0
		grown, err := growStatus(ctx, func(ctx context.Context, k *kind, value map[string]any) (*answer, error) {
			asked++
			return judge.putStatus(ctx, k.path(namespace)+"/"+nameOf(value), "?dryRun=All", value)
		}, o)
		if err == nil && !hasStatusFields(grown) {
			err = fmt.Errorf("no field of the status of %v can be set alone: give the object in the folder objects a status", o.kind)
		}
		return grown, asked, err
	})
}

func hasStatusFields(o *object) bool {
	status, _ := o.value["status"].(map[string]any)
	return len(status) > 0
}

// grown returns an object from the recording, or one that the judge has let grow.
func (c *comparisonRun) grown(base string, o *object, ask func(judge *side) (*object, int, error)) (*object, error) {
	name := o.kind.String()
	if value := c.recording.Objects[base][name]; value != nil {
		return &object{o.kind, base, value}, nil
	}
	judge, err := c.judge()
	if err != nil {
		return nil, err
	}
	grown, asked, err := ask(judge)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.log, "the %s object of %s: %d bytes, after %d requests\n", base, name, len(literal(grown.value)), asked)
	// As the recording has it after it was read.
	if grown.value, err = parseJSON([]byte(literal(grown.value))); err != nil {
		return nil, err
	}
	c.recording.set(grown)
	return grown, nil
}

// run asks both servers what a selection says and returns how they differ.
func (c *comparisonRun) run(ctx context.Context, s selection) (*report, error) {
	kinds, verbs := s.needed()
	if err := c.load(ctx, kinds, verbs); err != nil {
		return nil, err
	}
	requests, err := c.requests(s)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, requests)
}

// ask asks both servers each request and returns how they differ.
func (c *comparisonRun) ask(ctx context.Context, requests []*request) (*report, error) {
	result := newReport()
	began, done := time.Now(), 0
	for _, batch := range batches(requests) {
		if err := c.batch(ctx, batch, func(r *request, found []difference) {
			result.add(r, found, c.declared)
			if done++; done%1000 == 0 {
				fmt.Fprintf(c.log, "%d of %d requests, %d differ, %v\n", done, len(requests), result.undeclared(), time.Since(began).Round(time.Second))
			}
		}); err != nil {
			return result, err
		}
	}
	return result, nil
}

// needed returns the kinds and the verbs of what is asked.
func (s *selection) needed() (kinds, verbs []string) {
	words := strings.SplitN(s.only, " ", 4)
	if len(words) < 4 {
		return s.kinds, s.verbs
	}
	return []string{words[1] + " " + words[2]}, words[:1]
}

func (c *comparisonRun) requests(s selection) ([]*request, error) {
	if s.only != "" {
		r, err := parseRequest(c.recording.Catalog, s.only)
		return []*request{r}, err
	}
	var objects []*object
	for _, o := range c.objects {
		objects = append(objects, o)
	}
	sortObjects(objects)
	requests := s.generate(objects)
	if s.match != nil {
		requests = slices.DeleteFunc(requests, func(r *request) bool { return !s.match.MatchString(r.String()) })
	}
	return requests, nil
}

func (s *selection) generate(objects []*object) []*request {
	switch {
	case s.fieldValidation:
		return fieldValidations(objects, s.verbs, s.seed, s.n)
	case len(s.pairs) > 0:
		return topicPairs(objects, s.verbs, s.seed, s.n, s.pairs)
	default:
		return generate(objects, s.verbs, s.seed, s.n)
	}
}

// batches are requests that need the same to be stored: nothing, or one object, which a delete
// that is no dry run has for itself. Those that need nothing come first. The order within a batch is that of the requests.
func batches(requests []*request) [][]*request {
	var list [][]*request
	at := map[string]int{}
	for _, r := range requests {
		name := r.verb
		if r.verb != create {
			name = "object " + key(r.kind, r.base)
		}
		if r.real() || isSequence(r.verb) {
			name = r.String()
		}
		if _, ok := at[name]; !ok {
			at[name] = len(list)
			list = append(list, nil)
		}
		list[at[name]] = append(list[at[name]], r)
	}
	slices.SortStableFunc(list, func(a, b []*request) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[a[0].verb == create] - rank[b[0].verb == create]
	})
	return list
}

// batch asks the requests of a batch, several at a time, and calls found for each, one after
// the other, in the order of requests.
func (c *comparisonRun) batch(ctx context.Context, requests []*request, found func(*request, []difference)) (err error) {
	stored := c.stored(requests[0])
	judge, err := c.judgeFor(ctx, requests, stored)
	if err != nil {
		return err
	}
	if stored != nil {
		if err := c.ours.store(ctx, stored); err != nil {
			for _, r := range requests {
				found(r, []difference{{request: r.String(), kind: r.kind.String(), verb: r.verb, class: oursRefuses, at: "the object itself", ours: err.Error(), judge: "accepted"}})
			}
			return nil
		}
		defer func() { err = errors.Join(err, c.ours.remove(ctx, stored)) }()
	}
	if judge != nil && stored != nil {
		defer func() { err = errors.Join(err, judge.remove(ctx, stored)) }()
	}
	differences := make([][]difference, len(requests))
	errs := make([]error, len(requests))
	var group sync.WaitGroup
	next := make(chan int)
	for range c.workers {
		group.Go(func() {
			for i := range next {
				differences[i], errs[i] = c.one(ctx, requests[i], judge)
			}
		})
	}
	for i := range requests {
		next <- i
	}
	close(next)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, r := range requests {
		found(r, differences[i])
	}
	return nil
}

// stored returns the object that a request needs, or nil.
func (c *comparisonRun) stored(r *request) *object {
	if r.verb == create || r.verb == readBack || isSequence(r.verb) {
		return nil
	}
	return c.objects[key(r.kind, r.base)]
}

// judgeFor returns the judge, with the object stored, if it has to be asked something; or
// nil.
func (c *comparisonRun) judgeFor(ctx context.Context, requests []*request, stored *object) (*side, error) {
	if !slices.ContainsFunc(requests, func(r *request) bool { return c.recorded(r) == nil }) {
		return nil, nil
	}
	judge, err := c.judge()
	if err != nil || stored == nil {
		return judge, err
	}
	return judge, judge.store(ctx, stored)
}

// recorded returns what the judge has answered, or nil. The answers to a sequence of other steps count
// for nothing.
func (c *comparisonRun) recorded(r *request) *answer {
	a := c.recording.answer(r.String())
	if a == nil || !isSequence(r.verb) {
		return a
	}
	steps := sequences[r.verb](c.objects[key(r.kind, r.base)])
	if !slices.EqualFunc(a.Steps, steps, func(a *answer, s step) bool { return a.Step == s.name }) {
		return nil
	}
	return a
}

// one asks both servers one request.
func (c *comparisonRun) one(ctx context.Context, r *request, judge *side) ([]difference, error) {
	o := c.objects[key(r.kind, r.base)]
	if o == nil {
		return nil, fmt.Errorf("%v: there is no object %q", r, r.base)
	}
	name := r.String()
	expected := c.recorded(r)
	if expected == nil {
		var err error
		if expected, err = judge.ask(ctx, r, o.value); err != nil {
			return nil, err
		}
		c.recording.keep(name, expected)
	}
	if r.verb == create && len(r.edits) == 0 && !expected.accepted() {
		return nil, fmt.Errorf("the object %s is no valid one: %s", key(r.kind, r.base), describe(expected))
	}
	got, err := c.ours.ask(ctx, r, o.value)
	if err != nil {
		return nil, err
	}
	sent, err := r.body(o.value)
	if err != nil {
		return nil, err
	}
	return compare(r, normalise(got, r.kind, sent), normalise(expected, r.kind, sent)), nil
}
