package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// watcher records one watch stream in JSON. Its goroutine reads as fast as the
// server sends, unless it is slow on purpose.
type watcher struct {
	env      *Env
	path     string
	response *http.Response
	events   chan event
	failure  error // why events was closed; io.EOF is a clean end
	cancel   context.CancelFunc
	opened   time.Time
	lasts    time.Duration // timeoutSeconds; 0: none
}

// bookmarksAllowed is in the path of a watch that has asked for bookmarks.
const bookmarksAllowed = "allowWatchBookmarks=true"

// pendingEvents bounds what a watcher holds that its check has not asked for.
const pendingEvents = 256

// watch opens a watch of ConfigMaps, which has to succeed. It ends with the
// check.
func (e *Env) watch(query string) *watcher { return e.watchAt(e.configMaps() + "?watch=true&" + query) }

func (e *Env) watchAt(path string, headers ...string) *watcher {
	return e.watchWith(request{path: path, headers: headers})
}

func (e *Env) watchWith(r request) *watcher {
	w, err := e.openWatch(e.ctx, r)
	e.must(err)
	return w
}

// openWatch may be called from any goroutine. The watch ends with ctx.
func (e *Env) openWatch(ctx context.Context, r request) (*watcher, error) {
	ctx, cancel := context.WithCancel(ctx)
	opened := time.Now()
	response, err := e.open(ctx, r)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch %s: %w", r.path, err)
	}
	if response.StatusCode != http.StatusOK {
		defer cancel()
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
		a := &answer{code: response.StatusCode, header: response.Header, body: body}
		e.note("GET %s -> %s", r.path, a)
		return nil, errors.Join(&refused{request: r, answer: a}, err)
	}
	e.note("GET %s -> 200, a stream", r.path)
	w := &watcher{env: e, path: r.path, response: response, events: make(chan event, pendingEvents), cancel: cancel,
		opened: opened, lasts: timeoutOf(r.path)}
	go w.read(ctx)
	return w, nil
}

// timeoutOf returns the timeoutSeconds in a path.
func timeoutOf(path string) time.Duration {
	parsed, err := url.Parse(path)
	if err != nil {
		return 0
	}
	seconds, _ := strconv.Atoi(parsed.Query().Get("timeoutSeconds")) // 0 if it is not there
	return time.Duration(seconds) * time.Second
}

func (w *watcher) read(ctx context.Context) {
	defer close(w.events)
	defer w.response.Body.Close()
	decoder := json.NewDecoder(w.response.Body)
	for {
		var document json.RawMessage
		if w.failure = decoder.Decode(&document); w.failure != nil {
			return
		}
		v, err := decodeEvent(document)
		if err != nil {
			w.failure = fmt.Errorf("a document of the stream is no event: %w: %s", err, excerpt(document))
			return
		}
		select {
		case w.events <- v:
		case <-ctx.Done():
			w.failure = ctx.Err()
			return
		}
	}
}

// close ends the watch from the client's side.
func (w *watcher) close() { w.cancel() }

// await returns the next event; io.EOF after an orderly end.
func (w *watcher) await(within time.Duration) (event, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case v, ok := <-w.events:
		if !ok {
			return v, w.failure
		}
		w.env.note("watch %s: %s", w.path, v)
		return v, nil
	case <-timer.C:
		return event{}, errNothing
	}
}

var errNothing = errors.New("nothing arrived")

// soon is await for what has to come at once. The limit grows while it waits, if the server
// turns out to be slower than it was.
func (w *watcher) soon() (event, error) {
	for begin, limit := time.Now(), w.env.limit(); ; limit = w.env.limit() {
		v, err := w.await(limit - time.Since(begin))
		if !errors.Is(err, errNothing) {
			return v, err
		}
		waited := time.Since(begin)
		slow := w.env.judge(w.env.ctx, waited)
		switch {
		case waited < w.env.limit():
		case slow != nil:
			return event{}, fmt.Errorf("%w: %w", errNothing, slow)
		default:
			return event{}, fmt.Errorf("%w within %s", errNothing, roundTime(waited))
		}
	}
}

// next returns the next event, which has to come soon.
func (w *watcher) next() event {
	v, err := w.soon()
	if errors.Is(err, io.EOF) && w.lasts > 0 && time.Since(w.opened) >= w.lasts {
		w.env.late(w.lasts, "watch %s: an event was expected in its %s", w.path, w.lasts)
	}
	if err != nil {
		w.env.failf("watch %s: an event was expected: %v", w.path, err)
	}
	return v
}

// expect demands the next event that is no bookmark: to a watch that has asked for them, a server may send them at any time.
func (w *watcher) expect(kind, name string) event {
	v := w.next()
	for asked := strings.Contains(w.path, bookmarksAllowed); asked && v.Type == "BOOKMARK" && !v.initialEnd(); {
		v = w.next()
	}
	if v.Type != kind || v.Object.Metadata.Name != name {
		w.env.failf("watch %s: the next event is %s, not %s %s", w.path, v, kind, name)
	}
	return v
}

// expectError demands an in-stream ERROR, and the end of the stream behind it.
func (w *watcher) expectError(wanted want) {
	v := w.next()
	if v.Type != "ERROR" {
		w.env.failf("watch %s: the next event is %s, not an ERROR", w.path, v)
	}
	s, err := v.status()
	w.env.must(err)
	w.env.must(wanted.compare(s))
	w.end()
}

// end demands that the server ends the stream in order.
func (w *watcher) end() {
	switch v, err := w.soon(); {
	case err == nil:
		w.env.failf("watch %s: the stream should have ended; %s came", w.path, v)
	case !errors.Is(err, io.EOF):
		w.env.failf("watch %s: the stream should have ended in order: %v", w.path, err)
	}
}

// initial reads the initial events up to their bookmark and returns both.
func (w *watcher) initial() (added []event, bookmark event) {
	for {
		v := w.next()
		switch {
		case v.initialEnd():
			return added, v
		case v.Type != "ADDED":
			w.env.failf("watch %s: %s among the initial events", w.path, v)
		}
		added = append(added, v)
	}
}

// remaining reads until the server ends the stream.
func (w *watcher) remaining() (all []event) {
	for {
		v, err := w.soon()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			w.env.failf("watch %s: the end of the stream was expected: %v", w.path, err)
		}
		all = append(all, v)
	}
}
