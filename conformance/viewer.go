package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/levelwire/levelwire/conformance/history"
)

// viewer carries out a watchPlan and remembers what it was shown, one segment
// for each stream.
type viewer struct {
	env      *Env
	plan     watchPlan
	segments []history.Segment
	relists  int
	position uint64 // where the next stream resumes; 0: it has to list
	finished bool   // the end has been shown to it
}

func newViewer(e *Env, plan watchPlan, from uint64) *viewer {
	v := &viewer{env: e, plan: plan}
	if plan.end == "" {
		v.plan.end = endBlue
	}
	if plan.start == startAfter {
		v.position = from
	}
	return v
}

// run watches until the end has been shown or ctx ends. Streams that break,
// or cannot be opened, are opened again.
func (v *viewer) run(ctx context.Context) {
	if sleep(ctx, v.plan.delay) != nil {
		return
	}
	for ctx.Err() == nil {
		done, err := v.stream(ctx)
		if done {
			return
		}
		if errors.Is(err, errHistoryGone) {
			v.position = 0
			v.relists++
		}
		if err != nil && sleep(ctx, retryPause) != nil {
			return
		}
	}
}

// errHistoryGone says that the server no longer knows what came after the
// viewer's position.
var errHistoryGone = errors.New("410")

// stream lists if need be, watches, and records one segment.
func (v *viewer) stream(ctx context.Context) (done bool, err error) {
	query := "?watch=true&allowWatchBookmarks=true&" + v.plan.selector
	if v.plan.seconds > 0 {
		query += "&timeoutSeconds=" + strconv.Itoa(v.plan.seconds)
	}
	segment := history.Segment{From: v.position}
	streaming := v.position == 0 && v.plan.start == startStream
	switch {
	case streaming:
		query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	case v.position == 0:
		if err := v.list(ctx, &segment); err != nil {
			return false, err
		}
		fallthrough
	default:
		query += "&resourceVersion=" + strconv.FormatUint(segment.From, 10)
	}
	w, err := v.env.openWatch(ctx, request{path: v.env.configMaps() + query, http1: v.plan.http1, headers: v.plan.headers})
	if err != nil {
		var no *refused
		if errors.As(err, &no) && no.answer.code == http.StatusGone {
			return false, errHistoryGone
		}
		return false, err
	}
	defer w.close()
	if streaming {
		if err := initialItems(ctx, w, &segment); err != nil {
			return false, err
		}
	}
	v.position = segment.From
	done, err = v.follow(ctx, w, &segment)
	v.segments = append(v.segments, segment)
	return done, err
}

func (v *viewer) list(ctx context.Context, segment *history.Segment) error {
	r := request{path: v.env.configMaps() + "?" + v.plan.selector}
	a, err := v.env.exchange(ctx, r)
	if err != nil {
		return err
	}
	if a.code != http.StatusOK {
		return &refused{request: r, answer: a}
	}
	var l list
	if err := a.decode(&l); err != nil {
		return err
	}
	segment.Listed = true
	for i := range l.Items {
		if err := addItem(segment, &l.Items[i]); err != nil {
			return err
		}
	}
	segment.From, err = parseVersion(l.Metadata.ResourceVersion)
	return err
}

func addItem(segment *history.Segment, o *object) error {
	revision, err := parseVersion(o.version())
	if ours(o.Metadata.Name) {
		segment.Items = append(segment.Items, history.Item{Key: o.Metadata.Name, Revision: revision, State: stateOf(o)})
	}
	return err
}

// initialItems reads the first part of a streaming list.
func initialItems(ctx context.Context, w *watcher, segment *history.Segment) error {
	segment.Listed = true
	for {
		e, err := w.soon()
		if err != nil {
			return err
		}
		switch {
		case e.initialEnd():
			segment.From, err = parseVersion(e.Object.version())
			return err
		case e.Type != "ADDED":
			return fmt.Errorf("%s among the initial events", e)
		}
		if err := addItem(segment, &e.Object); err != nil {
			return err
		}
	}
}

// follow records events until the stream ends, the plan hangs up, or the end
// has been shown.
func (v *viewer) follow(ctx context.Context, w *watcher, segment *history.Segment) (done bool, err error) {
	for count := 0; ; {
		var e event
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case next, ok := <-w.events:
			if !ok {
				return false, ctx.Err()
			}
			e = next
		}
		if e.Type == "ERROR" {
			s, err := e.status()
			if err == nil && s.Code == http.StatusGone {
				err = errHistoryGone
			} else if err == nil {
				err = fmt.Errorf("the stream ended with %s", excerpt(e.Raw))
			}
			return false, err
		}
		revision, err := parseVersion(e.Object.version())
		if err != nil {
			return false, err
		}
		v.position = revision
		name := e.Object.Metadata.Name
		if e.Type != history.Bookmark && !ours(name) {
			continue
		}
		recorded := history.Event{Type: e.Type, Revision: revision}
		if e.Type != history.Bookmark {
			recorded.Key, recorded.State = name, stateOf(&e.Object)
		}
		segment.Events = append(segment.Events, recorded)
		if name == v.plan.end {
			v.finished = true
			return true, nil
		}
		if count++; count == v.plan.cutEvery {
			return false, nil
		}
		if err := sleep(ctx, v.plan.slow); err != nil {
			return false, err
		}
	}
}
