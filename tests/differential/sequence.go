package differential

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A sequence asks several things of one object, one after the other, and really writes: what a create,
// a read, an update and a delete with finalizers answer, and what a watch from before shows. Its
// name is its verb:
//
//	life apps/v1 Deployment small
//
// Each step has an answer of its own, and a difference says in which step it was found.

// step is a question of a sequence.
type step struct {
	name   string
	method string // GET, if it is empty
	// at is the path below that of the collection, or all of it if it begins with /api; {name} stands for the
	// object's name.
	at string
	// query, in which $version stands for the version of the last object that a step has shown, $since
	// for that of the first list, $continue for the token of the last page.
	query       string
	accept      string // as JSON, if it is empty
	contentType string // as JSON, if it is empty; noContentType: none
	// body makes what is sent; nil: nothing is.
	body func(*player) any
	// events is how many events a watch is read for; its answer is their list.
	events int
	// uncompared: what is answered depends on what a server does by itself.
	uncompared bool
	// untilGone: the watch ends, too, when the last object that a step has shown is deleted.
	untilGone bool
	// while is a part of the message of a server that has yet to see earlier steps: the step is asked
	// again. It must not write.
	while string
}

// player plays a sequence on a server.
type player struct {
	side *side
	kind *kind
	base map[string]any

	current    map[string]any // the last object that a step has shown
	since      string
	pagesAfter string
}

func isSequence(verb string) bool { return sequences[verb] != nil }

// playable reports whether a kind's objects can be read, watched and deleted, which sequences do.
func playable(k *kind) bool {
	for _, verb := range []string{"create", "get", "list", "watch", "update", "patch", "delete"} {
		if !slices.Contains(k.verbs, verb) {
			return false
		}
	}
	return true
}

// askSequence asks a sequence of an object that is not there before nor after it.
func (s *side) askSequence(ctx context.Context, r *request, base map[string]any) (*answer, error) {
	o := &object{r.kind, r.base, base}
	remove := func() error { return errors.Join(s.remove(ctx, o), s.removePages(ctx, r)) }
	if err := remove(); err != nil {
		return nil, err
	}
	defer func() { _ = remove() }()
	p := &player{side: s, kind: r.kind, base: base}
	whole := &answer{Code: http.StatusOK}
	var err error
	if whole.Steps, err = p.playAll(ctx, r, slices.Values(sequences[r.verb](o))); err != nil {
		return nil, err
	}
	whole.At = whole.Steps[len(whole.Steps)-1].At
	return whole, nil
}

func (p *player) playAll(ctx context.Context, r *request, steps iter.Seq[step]) (answers []*answer, err error) {
	for step := range steps {
		a, err := p.play(ctx, &step)
		if err != nil {
			return nil, fmt.Errorf("%v: %s: %w", r, step.name, err)
		}
		if step.uncompared {
			a = &answer{At: a.At, Code: http.StatusOK}
		}
		a.Step = step.name
		answers = append(answers, a)
	}
	return answers, nil
}

// removePages deletes the objects that the sequence pages has made beside the one.
func (s *side) removePages(ctx context.Context, r *request) error {
	if r.verb != pages {
		return nil
	}
	_, err := s.do(ctx, http.MethodDelete, r.kind.path(namespace)+"?"+ofPages, asJSON, nil)
	return err
}

func (p *player) play(ctx context.Context, s *step) (*answer, error) {
	m := message{method: s.method, contentType: s.contentType}
	if m.method == "" {
		m.method = http.MethodGet
	}
	switch m.contentType {
	case "":
		m.contentType = asJSON
	case noContentType:
		m.contentType = ""
	}
	if s.body != nil {
		var err error
		if m.body, err = encode(m.contentType, s.body(p)); err != nil {
			return nil, err
		}
	}
	at := strings.ReplaceAll(s.at, "{name}", url.PathEscape(nameOf(p.base)))
	if !strings.HasPrefix(at, "/api") {
		at = p.kind.path(namespace) + at
	}
	if s.query != "" {
		at += "?" + p.fill(s.query)
	}
	accept := s.accept
	if accept == "" {
		accept = asJSON
	}
	if strings.Contains(s.query, fromCache) {
		if err := p.side.catchUp(ctx, p.kind); err != nil {
			return nil, err
		}
	}
	if s.events > 0 {
		return p.watch(ctx, m, at, accept, s)
	}
	a, err := p.askWhile(ctx, s.while, m, at, accept)
	if err != nil {
		return nil, err
	}
	p.note(a)
	return a, p.settle(ctx, m.method, a)
}

// askWhile asks one question again while the message of the answer has a text; "": it asks once.
func (p *player) askWhile(ctx context.Context, text string, m message, at, accept string) (*answer, error) {
	wait, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		a, err := p.exchange(ctx, m, at, accept)
		if err != nil || text == "" || !strings.Contains(a.text("message"), text) {
			return a, err
		}
		select {
		case <-time.After(pollAfter):
		case <-wait.Done():
			return nil, fmt.Errorf("%s: %s: it still says %q: %w", p.side.name, at, a.text("message"), wait.Err())
		}
	}
}

// settle waits after a write, so that a controller of the server does not come between this step and
// the next.
func (p *player) settle(ctx context.Context, method string, a *answer) error {
	if method == http.MethodGet || !a.accepted() || settled[p.kind.Kind] == nil {
		return nil
	}
	after, err := p.side.settle(ctx, p.kind, p.kind.path(namespace)+"/"+nameOf(p.base))
	if err == nil {
		p.note(after)
	}
	return err
}

// fromCache is the query of reads that a server may answer from a cache that lacks the last writes.
const fromCache = "resourceVersion=0"

// catchUp has the server's cache of a kind read all writes that it has answered, so that a read
// from the cache shows what the sequence has written.
func (s *side) catchUp(ctx context.Context, k *kind) error {
	at := k.path(namespace) + "?limit=1"
	latest, err := s.do(ctx, http.MethodGet, at, asJSON, nil)
	if err != nil {
		return err
	}
	version, _ := get(latest.Body, versionPath)
	text, _ := version.(string)
	caught, err := s.do(ctx, http.MethodGet, at+"&resourceVersionMatch=NotOlderThan&resourceVersion="+text, asJSON, nil)
	if err == nil && !caught.accepted() {
		err = fmt.Errorf("%s: a list not older than %q: %+v", s.name, text, caught)
	}
	return err
}

// answerWithin bounds an answer. One that does not end, as that of a watch, is an error.
const answerWithin = 30 * time.Second

// exchange asks one question and reads the answer in whatever format it came.
func (p *player) exchange(ctx context.Context, m message, at, accept string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	response, err := p.side.send(ctx, m, at, accept)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	a, err := parseFormat(response)
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", p.side.name, m.method, at, err)
	}
	return a, nil
}

// note keeps what later steps send.
func (p *player) note(a *answer) {
	if !a.accepted() || a.Body == nil {
		return
	}
	metadata, _ := a.Body["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	if a.Body["kind"] == p.kind.Kind && metadata["name"] != nil {
		p.current = a.Body
	}
	if token, isList := metadata["continue"].(string); isList {
		p.pagesAfter = token
	}
	if p.since == "" {
		p.since = version
	}
}

func (p *player) fill(query string) string {
	version, _ := get(p.current, versionPath)
	text, _ := version.(string)
	return strings.NewReplacer(
		"$version", text, "$since", p.since, "$continue", url.QueryEscape(p.pagesAfter), "{name}", url.QueryEscape(nameOf(p.base)),
	).Replace(query)
}

// compareSteps returns how the steps of two answers differ.
func compareSteps(r *request, ours, judge *answer) []difference {
	if len(ours.Steps) != len(judge.Steps) {
		return nil // only one of them was accepted
	}
	var found []difference
	for i, theirs := range judge.Steps {
		for _, d := range compare(r, ours.Steps[i], theirs) {
			d.step = theirs.Step
			found = append(found, d)
		}
	}
	return found
}
