package histories

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/levelwire/levelwire/conformance/history"
)

// pause is how long watchers wait before they try again.
const pause = 50 * time.Millisecond

// watcher is a client that lists once and then watches, and does by hand what
// its way of watching does not do: list again when history is gone.
type watcher struct {
	*record
	viewer  *viewer
	from    toolscache.ListerWatcher
	version string
}

// wireManner is that of watchers: they see the events themselves.
var wireManner = manner{wire: true, unknownDeletions: true}

// plainWatch watches with client-go's typed client, and opens each watch where
// the one before has ended.
func plainWatch(t *testing.T, config *rest.Config, v view, contentType string) *subject {
	t.Helper()
	return watching(t, "plain watch, ", config, v, contentType, (*watcher).follow)
}

// retryWatch watches with client-go's RetryWatcher.
func retryWatch(t *testing.T, config *rest.Config, v view, contentType string) *subject {
	t.Helper()
	return watching(t, "RetryWatcher, ", config, v, contentType, (*watcher).retry)
}

func watching(
	t *testing.T, name string, config *rest.Config, v view, contentType string, follow func(*watcher, context.Context) bool,
) *subject {
	t.Helper()
	pipe := &tap{}
	w := &watcher{
		record: newRecord(name+v.name+", "+word(contentType == protobufType, "protobuf", "JSON"), v, wireManner),
		viewer: &viewer{}, from: source(t, config, v, contentType, pipe),
	}
	return &subject{
		record: w.record, exact: w.viewer, holds: w.copy, asked: func() tally { return tally{lists: int(pipe.lists.Load())} },
		start: func(ctx context.Context, _ *testing.T) func() {
			ctx, cancel := context.WithCancel(ctx)
			w.list(ctx)
			var running sync.WaitGroup
			running.Go(func() {
				for ctx.Err() == nil {
					if gone := follow(w, ctx); gone {
						w.list(ctx)
					}
					wait(ctx, pause)
				}
			})
			return func() { cancel(); running.Wait() }
		},
	}
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// list reads the whole state, when the server lets it.
func (w *watcher) list(ctx context.Context) {
	for ctx.Err() == nil {
		answer, err := w.from.List(metav1.ListOptions{}) //nolint:staticcheck // The successor is not in the interface.
		if err != nil {
			wait(ctx, pause)
			continue
		}
		pods := answer.(*corev1.PodList)
		w.version = pods.ResourceVersion
		n := note{kind: relisted}
		for i := range pods.Items {
			n.list = append(n.list, stateOf(&pods.Items[i]))
		}
		w.viewer.listed(w.version, n.list)
		w.note(n)
		return
	}
}

// follow opens one watch and reads it to its end. It reports whether history
// was gone.
func (w *watcher) follow(ctx context.Context) (gone bool) {
	stream, err := w.from.Watch(metav1.ListOptions{ResourceVersion: w.version, AllowWatchBookmarks: true}) //nolint:staticcheck // As above.
	if err != nil {
		return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	}
	defer stream.Stop()
	w.viewer.opened(w.version)
	return w.read(ctx, stream.ResultChan())
}

// retry reads a RetryWatcher to its end: it ends when the server has answered that
// history is gone.
func (w *watcher) retry(ctx context.Context) (gone bool) {
	retrying, err := watchtools.NewRetryWatcherWithContext(ctx, w.version, toolscache.ToWatcherWithContext(w.from))
	if err != nil {
		return false
	}
	defer retrying.Stop()
	w.viewer.opened(w.version)
	return w.read(ctx, retrying.ResultChan())
}

func (w *watcher) read(ctx context.Context, events <-chan watch.Event) (gone bool) {
	for {
		select {
		case <-ctx.Done():
			return false
		case e, more := <-events:
			if !more {
				return false
			}
			if e.Type == watch.Error {
				err := apierrors.FromObject(e.Object)
				return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
			}
			w.receive(e)
		}
	}
}

func (w *watcher) receive(e watch.Event) {
	pod := e.Object.(*corev1.Pod)
	s := stateOf(pod)
	w.version = pod.ResourceVersion
	w.viewer.receive(e.Type, s)
	switch e.Type {
	case watch.Added:
		w.note(note{kind: added, state: s})
	case watch.Modified:
		w.note(note{kind: updated, state: s})
	case watch.Deleted:
		w.note(note{kind: deleted, state: s})
	}
}

// viewer writes a watcher's streams down for the properties of package history,
// which exact history has.
type viewer struct {
	mu       sync.Mutex
	segments []history.Segment
	begun    bool // the last segment is of a list whose watch has not been opened yet
}

func (v *viewer) listed(version string, items []state) {
	segment := history.Segment{From: number(version), Listed: true}
	for _, s := range items {
		segment.Items = append(segment.Items, history.Item{Key: s.key, Revision: s.version, State: s.historic()})
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.segments, v.begun = append(v.segments, segment), true
}

func (v *viewer) opened(version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.begun {
		v.segments = append(v.segments, history.Segment{From: number(version)})
	}
	v.begun = false
}

func (v *viewer) receive(kind watch.EventType, s state) {
	e := history.Event{Type: string(kind), Revision: s.version}
	if kind != watch.Bookmark {
		e.Key, e.State = s.key, s.historic()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	last := &v.segments[len(v.segments)-1]
	last.Events = append(last.Events, e)
}

func number(version string) uint64 {
	return stateOfMeta(&metav1.ObjectMeta{ResourceVersion: version}).version
}

// historic is the state as package history compares it.
func (s state) historic() history.State {
	return history.State{Labels: map[string]string{"color": s.color, "node": s.node, "phase": s.phase}, Content: s.step}
}

// writes is the store's history as package history wants it.
func (h storeHistory) writes() []history.Write {
	var all []history.Write
	for _, c := range h.changes {
		w := history.Write{Key: c.key, Revision: c.version, Deletes: c.deleted}
		if !c.deleted {
			w.State = c.historic()
		}
		all = append(all, w)
	}
	return all
}

// views returns what the watchers among the subjects have seen.
func viewsOf(subjects []*subject) []history.View {
	var all []history.View
	for _, s := range subjects {
		if s.exact == nil {
			continue
		}
		v := history.View{Name: s.name}
		if s.view != views[0] {
			v.Selects = func(key string, h history.State) bool {
				return s.view.selects(state{key: key, content: content{color: h.Labels["color"], node: h.Labels["node"], phase: h.Labels["phase"]}})
			}
		}
		s.exact.mu.Lock()
		v.Segments = append(v.Segments, s.exact.segments...)
		s.exact.mu.Unlock()
		all = append(all, v)
	}
	return all
}
