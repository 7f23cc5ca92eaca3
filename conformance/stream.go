package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/conformance/history"
)

var streamGuarantees = makeStreamGuarantees()

// makeStreamGuarantees makes a guarantee of every property of histories. All
// of them look at one recording.
func makeStreamGuarantees() []Guarantee {
	var all []Guarantee
	for _, property := range history.Properties() {
		all = append(all, Guarantee{
			Name: "stream/" + property.Name, Sentence: property.Sentence, Source: sourceConcepts,
			check: func(e *Env) {
				recorded, err := e.scenario(e.ctx)
				e.must(err)
				if v := property.Check(&recorded.History); v != nil {
					e.failf("%s", v)
				}
				e.must(recorded.slow)
				e.note("%s", recorded.summary())
			},
		})
	}
	return all
}

// scenario is what a recording is made of.
type scenario struct {
	writers  int
	keys     int           // of each writer
	writes   int           // of each writer
	pause    time.Duration // between two writes of a writer
	watchers []watchPlan
	timeout  time.Duration // how long watchers have at least to show the end
	// between, if set, is called when all watchers have been started and
	// before the end is written: the place for faults.
	between func(ctx context.Context) error
}

// The keys that are written last. Every watcher waits for one of them.
const (
	endRed  = "end-red"
	endBlue = "end-blue"
)

// watchPlan says how one watcher goes about it.
type watchPlan struct {
	name     string
	selector string // of the query, encoded
	selects  func(key string, s history.State) bool
	end      string // the key whose appearance ends it
	start    startKind
	delay    time.Duration // before it begins
	slow     time.Duration // per event
	cutEvery int           // hangs up after so many events; 0: never
	seconds  int           // timeoutSeconds; 0: none
	http1    bool
	headers  []string
}

type startKind int

const (
	startAfter  startKind = iota // a watch from a version known before
	startList                    // a list, and a watch from its version
	startStream                  // a streaming list
)

func isColor(color string) func(string, history.State) bool {
	return func(_ string, s history.State) bool { return s.Labels["color"] == color }
}

func notColor(color string) func(string, history.State) bool {
	return func(_ string, s history.State) bool { return s.Labels["color"] != color }
}

func isKey(name string) func(string, history.State) bool {
	return func(key string, _ history.State) bool { return key == name }
}

// standardScenario is what the stream guarantees look at. It takes about six
// seconds, for bookmarks to be placed before the end of short watches.
func standardScenario() scenario {
	const red, notRed = "labelSelector=color%3Dred", "labelSelector=color%21%3Dred"
	return scenario{
		writers: 4, keys: 5, writes: 120, pause: 45 * time.Millisecond,
		watchers: []watchPlan{
			{name: "from a version", start: startAfter},
			{name: "from a version, HTTP/1.1, slow", start: startAfter, http1: true, slow: 3 * time.Millisecond},
			{name: "list and watch", start: startList},
			{name: "list and watch, late", start: startList, delay: 700 * time.Millisecond},
			{name: "list and watch, later", start: startList, delay: 1900 * time.Millisecond},
			{name: "list and watch, slow", start: startList, delay: 100 * time.Millisecond, slow: 5 * time.Millisecond},
			{name: "streaming list", start: startStream},
			{name: "streaming list, late", start: startStream, delay: 1300 * time.Millisecond},
			{name: "streaming list, HTTP/1.1", start: startStream, http1: true, delay: 500 * time.Millisecond},
			{name: "resuming every 7 events", start: startList, cutEvery: 7},
			{name: "resuming every 20 events, slow", start: startAfter, cutEvery: 20, slow: 2 * time.Millisecond},
			{name: "resuming every 3 s", start: startList, seconds: 3},
			{name: "resuming every 4 s", start: startStream, seconds: 4},
			{name: "red", start: startList, selector: red, selects: isColor("red"), end: endRed},
			{name: "red, streaming", start: startStream, selector: red, selects: isColor("red"), end: endRed, delay: 300 * time.Millisecond},
			{name: "red, resuming every 5 events", start: startList, selector: red, selects: isColor("red"), end: endRed, cutEvery: 5},
			{name: "red, resuming every 3 s", start: startAfter, selector: red, selects: isColor("red"), end: endRed, seconds: 3},
			{name: "not red", start: startList, selector: notRed, selects: notColor("red")},
			{name: "one object", start: startList, selector: "fieldSelector=metadata.name%3D" + endBlue, selects: isKey(endBlue)},
		},
	}
}

// recording is a history with what it took to make it.
type recording struct {
	history.History
	events, segments, relists int
	// slow is why some watchers were not shown the end, if the server was too
	// slow for that to count against it.
	slow error
}

func (r *recording) summary() string {
	return fmt.Sprintf("%d writes, %d watchers, %d events in %d streams, %d lists because history was gone",
		len(r.Writes), len(r.Views), r.events, r.segments, r.relists)
}

// record runs a scenario in the namespace of e and returns what happened.
// Requests that fail are repeated until ctx ends: servers may go and come.
func (s *scenario) record(ctx context.Context, e *Env) (*recording, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writers := make([]*writer, s.writers)
	for i := range writers {
		writers[i] = &writer{env: e, number: i, keys: s.keys, pause: s.pause}
		if err := writers[i].begin(ctx); err != nil {
			return nil, err
		}
	}
	from, err := e.stableVersion(ctx)
	if err != nil {
		return nil, err
	}
	watchers := make([]*viewer, len(s.watchers))
	var watching, writing sync.WaitGroup
	watchCtx, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	for i, plan := range s.watchers {
		watchers[i] = newViewer(e, plan, from)
		watching.Go(func() { watchers[i].run(watchCtx) })
	}
	failed := make([]error, len(writers)+1)
	for i, w := range writers {
		writing.Go(func() { failed[i] = w.run(ctx, s.writes) })
	}
	if s.between != nil {
		failed[len(writers)] = s.between(ctx)
	}
	writing.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	last := &writer{env: e, number: len(writers)}
	if err := last.finish(ctx); err != nil {
		return nil, err
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		watching.Wait()
	}()
	slow := s.awaitEnd(ctx, e, shown)
	stopWatching()
	<-shown
	return s.collect(slices.Concat(writers, []*writer{last}), watchers, slow), nil
}

// awaitEnd waits until all watchers have been shown the end, or have had the time. The error says
// that the server was too slow for the time that they had.
func (s *scenario) awaitEnd(ctx context.Context, e *Env, shown <-chan struct{}) error {
	for begin := time.Now(); ; {
		timer := time.NewTimer(max(s.timeout, e.limit()) - time.Since(begin))
		select {
		case <-shown:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		waited := time.Since(begin)
		if err := e.judge(ctx, waited); waited >= max(s.timeout, e.limit()) {
			return err
		}
	}
}

func (s *scenario) collect(writers []*writer, watchers []*viewer, slow error) *recording {
	r := &recording{}
	for _, w := range writers {
		boundDeletions(w.done)
		r.Writes = append(r.Writes, w.done...)
		for _, done := range w.done {
			r.Until = max(r.Until, done.Revision)
		}
	}
	for _, w := range watchers {
		view := history.View{Name: w.plan.name, Selects: w.plan.selects, Segments: w.segments}
		if slow != nil && !w.finished {
			view.Unfinished = true
			r.slow = fmt.Errorf("the watcher %q was not shown the end: %w", w.plan.name, slow)
		}
		r.Views = append(r.Views, view)
		r.segments += len(w.segments)
		r.relists += w.relists
		for _, segment := range w.segments {
			r.events += len(segment.Events)
		}
	}
	return r
}

// boundDeletions sets for each deletion of one writer what came next.
func boundDeletions(writes []history.Write) {
	next := uint64(0)
	for i := len(writes) - 1; i >= 0; i-- {
		if writes[i].Deletes {
			writes[i].Before = next
			continue
		}
		next = writes[i].Revision
	}
}

// stableVersion returns the collection's version.
func (e *Env) stableVersion(ctx context.Context) (uint64, error) {
	a, err := e.exchange(ctx, request{path: e.configMaps()})
	if err != nil {
		return 0, err
	}
	var l list
	if err := a.decode(&l); err != nil {
		return 0, err
	}
	return parseVersion(l.Metadata.ResourceVersion)
}

// stateOf is what histories remember of an object. Labels that other software
// puts there are its own business.
func stateOf(o *object) history.State {
	s := history.State{Labels: map[string]string{}, Content: o.Data["content"]}
	if color, ok := o.Metadata.Labels["color"]; ok {
		s.Labels["color"] = color
	}
	return s
}

// ours says whether a key is one that the scenario writes: clusters put
// objects of their own into every namespace.
func ours(key string) bool { return strings.HasPrefix(key, "w") || key == endRed || key == endBlue }
