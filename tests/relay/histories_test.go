package relay

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/conformance/history"
)

var (
	duration = flag.Duration("histories.duration", 4*time.Second, "for how long faults are made in each test of histories")
	patience = flag.Duration("histories.patience", 3*time.Minute, "how long clients may take to see the end of a history")
	seed     = flag.Int64("histories.seed", 1, "the seed of the order of faults")
)

// recorder notes what is written to a server, and what clients see through relays, for the
// checks of package history.
type recorder struct {
	t    *testing.T
	stop context.Context // ends the clients
	wait sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	done  []history.Write
	acked []acknowledged
	views []*history.View // of watchers
	lists []*history.View // of clients that only list
	ages  []declaration
	until uint64
	eras  []era // that restores of the upstream have begun
}

// era is what is written and seen after the restore of a backup.
type era struct {
	version uint64 // from which on all versions are of this era
	write   int    // the index of its first write
}

// acknowledged is a write whose answer arrived at a time.
type acknowledged struct {
	at       time.Time
	revision uint64
}

// declaration is a list of any state, with what was said of how old it is.
type declaration struct {
	asked    time.Time
	age      time.Duration
	revision uint64
	items    []history.Item
}

// tokenConfig returns how a client with the administrator's token reaches a server.
func tokenConfig(host string) *rest.Config {
	return &rest.Config{Host: "https://" + host, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
}

// mapsAt returns the config maps of the namespace default of a server, for one client.
func mapsAt(t *testing.T, host string) (client.Resource[*corev1.ConfigMap], *client.Client) {
	t.Helper()
	c, err := client.New(tokenConfig(host), client.Options{Retry: client.RetryOptions{Max: -1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault), c
}

func parseRevision(version string) uint64 {
	revision, _ := strconv.ParseUint(version, 10, 64)
	return revision
}

func stateOf(m *corev1.ConfigMap) history.State {
	return history.State{Labels: m.Labels, Content: m.Data["content"]}
}

func isRed(_ string, s history.State) bool { return s.Labels["color"] == "red" }

// retry pauses after a failure.
func (r *recorder) retry() {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.stop.Done():
	}
}

// last makes the writes that every watcher waits for.
func (r *recorder) last(to client.Resource[*corev1.ConfigMap]) {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: lastKey, Labels: map[string]string{"color": "red"}}, Data: map[string]string{"content": "last"}}
	r.settle(func() error {
		written, err := to.Create(context.Background(), m, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			written, err = to.Get(context.Background(), m.Name, metav1.GetOptions{})
		}
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.until = parseRevision(written.ResourceVersion)
			r.done = append(r.done, history.Write{Key: m.Name, State: stateOf(written), Revision: r.until})
		}
		return err
	})
}

// settle repeats a write until it is known to be done.
func (r *recorder) settle(do func() error) {
	for begin := time.Now(); ; r.pause() {
		if err := do(); err == nil {
			return
		} else if time.Since(begin) > *patience {
			r.t.Errorf("a write is not done after %v: %v", *patience, err)
			return
		}
	}
}

// pause is retry for a writer, which does not stop in the middle of a write.
func (r *recorder) pause() { <-time.After(5 * time.Millisecond) }

// newest returns the newest version of a write that has been acknowledged.
func (r *recorder) newest() (revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until
}

// lastKey is the name of the object that is written last.
const lastKey = "last"

// watch lists and watches until the view has the object that is written last, resuming
// wherever a watch has ended.
func (r *recorder) watch(from client.Resource[*corev1.ConfigMap], name, selector string) {
	view := &history.View{Name: name}
	opts := metav1.ListOptions{LabelSelector: selector, AllowWatchBookmarks: true}
	if selector != "" {
		view.Selects = isRed
	}
	r.mu.Lock()
	r.views = append(r.views, view)
	r.mu.Unlock()
	var at uint64
	for finished := false; !finished; {
		if at == 0 {
			list, err := from.List(r.stop, metav1.ListOptions{LabelSelector: selector})
			if r.stop.Err() != nil {
				return
			}
			if err != nil {
				r.retry()
				continue
			}
			segment := history.Segment{From: parseRevision(list.ResourceVersion), Listed: true}
			for _, m := range list.Items {
				segment.Items = append(segment.Items, history.Item{Key: m.Name, Revision: parseRevision(m.ResourceVersion), State: stateOf(m)})
			}
			segment.Items = slices.DeleteFunc(segment.Items, func(i history.Item) bool { return i.Key == "kube-root-ca.crt" })
			finished = slices.ContainsFunc(segment.Items, func(i history.Item) bool { return i.Key == lastKey })
			view.Segments = append(view.Segments, segment)
			at = segment.From
			continue
		}
		opts.ResourceVersion = strconv.FormatUint(at, 10)
		w, err := from.Watch(r.stop, opts)
		if r.stop.Err() != nil {
			return
		}
		if err != nil {
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				at = 0
			}
			r.retry()
			continue
		}
		segment := history.Segment{From: at}
		for !finished {
			event, err := w.Next()
			if err != nil {
				if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
					at = 0
				}
				break
			}
			revision := parseRevision(event.Object.ResourceVersion)
			e := history.Event{Type: string(event.Type), Revision: revision}
			if event.Type != apiwatch.Bookmark {
				e.Key, e.State = event.Object.Name, stateOf(event.Object)
			}
			if e.Key != "kube-root-ca.crt" {
				segment.Events = append(segment.Events, e)
			}
			at = max(at, revision)
			finished = e.Key == lastKey
		}
		w.Close()
		view.Segments = append(view.Segments, segment)
	}
}

// read lists again and again: the most recent state, which must have every write that was
// acknowledged before, and any state, which must not be older than it declares.
func (r *recorder) read(from client.Resource[*corev1.ConfigMap], c *client.Client, name string, answers *atomic.Int64, written *recorder) {
	view := &history.View{Name: name}
	r.mu.Lock()
	r.lists = append(r.lists, view)
	r.mu.Unlock()
	for i := 0; r.stop.Err() == nil; i++ {
		r.retry()
		if i%2 == 0 {
			acked := written.newest()
			list, err := from.List(r.stop, metav1.ListOptions{})
			if err != nil {
				continue
			}
			segment := history.Segment{From: parseRevision(list.ResourceVersion), Listed: true}
			if segment.From < acked {
				r.t.Errorf("%s: a list of the most recent state is at %d, and a write was acknowledged at %d before", name, segment.From, acked)
			}
			for _, m := range list.Items {
				if m.Name != "kube-root-ca.crt" {
					segment.Items = append(segment.Items, history.Item{Key: m.Name, Revision: parseRevision(m.ResourceVersion), State: stateOf(m)})
				}
			}
			view.Segments = append(view.Segments, segment)
			answers.Add(1)
			continue
		}
		asked := time.Now()
		list, age, err := r.anyState(c)
		if err != nil {
			continue
		}
		d := declaration{asked: asked, age: time.Duration(age) * time.Second, revision: parseRevision(list.ResourceVersion)}
		for _, m := range list.Items {
			if m.Name != "kube-root-ca.crt" {
				d.items = append(d.items, history.Item{Key: m.Name, Revision: parseRevision(m.ResourceVersion), State: stateOf(&m)})
			}
		}
		r.mu.Lock()
		r.ages = append(r.ages, d)
		r.mu.Unlock()
		answers.Add(1)
	}
}

// anyState lists any state, and returns the age that is declared.
func (r *recorder) anyState(c *client.Client) (list *corev1.ConfigMapList, age int, err error) {
	response, err := c.Raw(r.stop, client.RawRequest{Path: "/api/v1/namespaces/default/configmaps?resourceVersion=0"})
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("%s: %w", response.Status, err)
	}
	if age, err = strconv.Atoi(response.Header.Get("Age")); err != nil {
		return nil, 0, err
	}
	list = &corev1.ConfigMapList{}
	return list, age, json.Unmarshal(body, list)
}

// check holds what was seen to what was written. Without exact, a watcher may be sent the
// latest change of each object in place of several.
func (r *recorder) check(exact bool) {
	r.t.Helper()
	h := &history.History{Writes: r.done, Until: r.until}
	for _, view := range r.views {
		h.Views = append(h.Views, *view)
	}
	events, segments := 0, 0
	for _, view := range h.Views {
		for _, segment := range view.Segments {
			events += len(segment.Events)
			segments++
		}
	}
	r.t.Logf("%d writes, %d views with %d segments and %d events, %d lists of any state", len(h.Writes), len(h.Views), segments, events, len(r.ages))
	properties := history.Properties()
	if !exact {
		properties = []history.Property{{Name: "ordered", Sentence: "A watcher is shown events in the order of their versions.", Check: history.Ordered}}
		for _, view := range h.Views {
			if problem := converges(h.Writes, view); problem != "" {
				r.t.Errorf("%s: %s", view.Name, problem)
				for _, segment := range view.Segments[max(len(view.Segments)-3, 0):] {
					first, last := "", ""
					if n := len(segment.Events); n > 0 {
						first, last = segment.Events[0].String(), segment.Events[n-1].String()
					}
					r.t.Logf("  a watch from %d (after a list: %v) has %d events, %s to %s", segment.From, segment.Listed, len(segment.Events), first, last)
				}
			}
		}
	}
	for _, property := range properties {
		if violation := property.Check(h); violation != nil {
			r.t.Errorf("%s\n%s", property.Sentence, violation)
		}
	}
	r.checkLists(exact)
	for _, d := range r.ages {
		for _, a := range r.acked {
			if a.revision > d.revision && a.at.Before(d.asked.Add(-d.age-time.Second)) {
				r.t.Errorf("a list of any state was asked for at %s, is at %d and declares an age of %s, and lacks the write %d of %s",
					d.asked.Format("05.000"), d.revision, d.age, a.revision, a.at.Format("05.000"))
				break
			}
		}
	}
}

// checkLists holds each list to the state at its version. When deletions were, events say only with
// exact: a relay that has missed several deletions does not know their versions, and announces
// them at the last ones up to that of its list, of which each may be later or earlier than the deletion
// was. Then the first list without an object says it: all after that lack the object.
func (r *recorder) checkLists(exact bool) {
	r.t.Helper()
	eras := append([]era{{}}, r.eras...)
	eras = append(eras, era{math.MaxUint64, len(r.done)})
	for i, e := range eras[:len(eras)-1] {
		next := eras[i+1]
		h := &history.History{Writes: r.done[e.write:next.write]}
		for _, view := range slices.Concat(r.views, r.lists) {
			of := history.View{Name: view.Name, Selects: view.Selects}
			for _, segment := range view.Segments {
				if segment.From < e.version || segment.From >= next.version {
					segment.Listed, segment.Items = false, nil
				}
				segment.Events = slices.DeleteFunc(slices.Clone(segment.Events), func(event history.Event) bool {
					return !exact || event.Revision < e.version || event.Revision >= next.version
				})
				of.Segments = append(of.Segments, segment)
			}
			h.Views = append(h.Views, of)
		}
		if violation := history.Atomic(h); violation != nil {
			r.t.Errorf("A list shows the state at its version.\n%s", violation)
		}
	}
}

// converges returns what is wrong with a view that need not have every change: it ends with
// the last state of each object that was written, shows nothing that was not written, and
// no object after its deletion.
func converges(writes []history.Write, view history.View) string {
	written := map[uint64]history.Write{}
	last := map[string]history.Write{}
	for _, w := range writes { // those of one key are in order
		written[w.Revision], last[w.Key] = w, w
	}
	type known struct {
		revision uint64
		state    history.State
	}
	holds, ended := map[string]known{}, map[string]uint64{}
	for _, segment := range view.Segments {
		if segment.Listed {
			clear(holds)
			for _, item := range segment.Items {
				holds[item.Key] = known{item.Revision, item.State}
			}
		}
		for _, e := range segment.Events {
			switch e.Type {
			case history.Bookmark:
			case history.Deleted:
				delete(holds, e.Key)
				ended[e.Key] = e.Revision
			default:
				if w := written[e.Revision]; w.Key != e.Key || w.State.Content != e.State.Content {
					return fmt.Sprintf("%s was not written: %s was", e, w)
				}
				if e.Revision <= ended[e.Key] || e.Revision <= holds[e.Key].revision {
					return fmt.Sprintf("%s comes after a deletion at %d and version %d", e, ended[e.Key], holds[e.Key].revision)
				}
				holds[e.Key] = known{e.Revision, e.State}
			}
		}
	}
	for key, w := range last {
		matches := !w.Deletes && (view.Selects == nil || view.Selects(key, w.State))
		if got, ok := holds[key]; ok != matches || matches && got.revision != w.Revision {
			return fmt.Sprintf("in the end it has %s: %v at version %d, and it was written at %d (deleted: %v)", key, ok, got.revision, w.Revision, w.Deletes)
		}
	}
	return ""
}
