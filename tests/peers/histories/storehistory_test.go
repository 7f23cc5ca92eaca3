package histories

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/storage"
)

// podPrefix is where servers keep pods.
const podPrefix = "/registry/pods/"

// content is what of a pod the writers change and selectors look at.
type content struct {
	color string // label
	node  string
	phase string
	step  string // annotation; different for each write
}

// state is one state of one pod.
type state struct {
	key     string // namespace/name
	uid     types.UID
	version uint64
	content
}

func (s state) String() string {
	return fmt.Sprintf("%s@%d (%s, %s, %s on %q)", s.key, s.version, s.step, s.color, s.phase, s.node)
}

// sameObject says whether two states are of one object: a pod that is created
// again under the same name is another one.
func (s state) sameObject(other state) bool { return s.uid == other.uid }

// is says whether two states are the same one.
func (s state) is(other state) bool { return s.uid == other.uid && s.version == other.version }

func stateOf(pod *corev1.Pod) state {
	s := stateOfMeta(pod)
	s.node, s.phase = pod.Spec.NodeName, string(pod.Status.Phase)
	return s
}

func stateOfMeta(obj metav1.Object) state {
	version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64) // 0 is no version at all
	return state{
		key: obj.GetNamespace() + "/" + obj.GetName(), uid: obj.GetUID(), version: version,
		content: content{color: obj.GetLabels()["color"], step: obj.GetAnnotations()["step"]},
	}
}

// change is one change of one pod in the store. A deletion has the last state,
// with the version of the deletion.
type change struct {
	state
	deleted bool
}

// historyReader reads the history of all pods from the store, from its beginning.
type historyReader struct {
	mu      sync.Mutex
	changes []change
	reached uint64 // everything up to here is known
	failed  error
	moved   chan struct{} // closed and replaced when reached grows
}

// follow reads a store's changes until ctx ends. No client may compact what it
// has not read: see await.
func follow(ctx context.Context, t *testing.T, store storage.Watcher) *historyReader {
	t.Helper()
	reader := &historyReader{moved: make(chan struct{})}
	stream, err := store.Watch(ctx, podPrefix, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			batch, err := stream.Next()
			reader.note(batch, err)
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(reading.Wait)
	return reader
}

func (h *historyReader) note(batch storage.Batch, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
	for _, e := range batch.Events {
		if err := h.add(e); err != nil && h.failed == nil {
			h.failed = err
		}
	}
	h.reached = max(h.reached, uint64(batch.Revision))
	close(h.moved)
	h.moved = make(chan struct{})
}

func (h *historyReader) add(e storage.Event) error {
	key := strings.TrimPrefix(e.Key, podPrefix)
	if e.Deleted {
		for _, c := range slices.Backward(h.changes) {
			if c.key == key {
				c.version, c.deleted = uint64(e.Revision), true
				h.changes = append(h.changes, c)
				return nil
			}
		}
		return fmt.Errorf("%s was deleted at %d, and never written", key, e.Revision)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(e.Value, pod); err != nil {
		return fmt.Errorf("%s at %d: %w", key, e.Revision, err)
	}
	s := stateOf(pod)
	s.version = uint64(e.Revision)
	if s.key != key {
		return fmt.Errorf("what is stored under %s says that it is %s", key, s.key)
	}
	h.changes = append(h.changes, change{state: s})
	return nil
}

// await returns when everything up to a revision is known.
func (h *historyReader) await(ctx context.Context, revision uint64) error {
	for {
		h.mu.Lock()
		reached, failed, moved := h.reached, h.failed, h.moved
		h.mu.Unlock()
		if failed != nil || reached >= revision {
			return failed
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("the store's history is known up to %d, not to %d: %w", reached, revision, ctx.Err())
		}
	}
}

// upToNow returns the history up to the store's present.
func (h *historyReader) upToNow(ctx context.Context, store storage.Reader) (storeHistory, error) {
	current, err := retry(ctx, store.Current)
	if err == nil {
		err = h.await(ctx, uint64(current))
	}
	if err != nil {
		return storeHistory{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return newStoreHistory(slices.Clone(h.changes), uint64(current)), nil
}

// retry calls f until it succeeds: a store whose server has been killed is back
// soon.
func retry[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	for {
		one, cancel := context.WithTimeout(ctx, 2*time.Second) //passes: the server may be gone, and is asked again
		result, err := f(one)
		cancel()
		if err == nil || ctx.Err() != nil {
			return result, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// storeHistory is the store's history, complete up to a version.
type storeHistory struct {
	changes []change // ascending
	until   uint64
	byUID   map[types.UID][]change
}

func newStoreHistory(changes []change, until uint64) storeHistory {
	h := storeHistory{changes: changes, until: until, byUID: map[types.UID][]change{}}
	for _, c := range changes {
		h.byUID[c.uid] = append(h.byUID[c.uid], c)
	}
	return h
}

// at returns the pods of a view after a version.
func (h storeHistory) at(version uint64, v view) map[string]state {
	all := map[string]state{}
	for _, c := range h.changes {
		switch {
		case c.version > version:
			return all
		case c.deleted || !v.selects(c.state):
			delete(all, c.key)
		default:
			all[c.key] = c.state
		}
	}
	return all
}

// now is what there is in the end.
func (h storeHistory) now(v view) map[string]state { return h.at(h.until, v) }

// wrote returns whether a state was ever written.
func (h storeHistory) wrote(s state) bool {
	for _, c := range h.byUID[s.uid] {
		if !c.deleted && c.state == s {
			return true
		}
	}
	return false
}

// deletion returns the version that the deletion of an object removed, and that of the deletion.
func (h storeHistory) deletion(uid types.UID) (removed, at uint64, deleted bool) {
	for _, c := range h.byUID[uid] {
		if c.deleted {
			return removed, c.version, true
		}
		removed = c.version
	}
	return 0, 0, false
}

// wasOutside says whether there was a moment in [from, to) at which an object was
// not in a view, because it had left, was deleted, or did not exist yet.
func (h storeHistory) wasOutside(uid types.UID, v view, from, to uint64) bool {
	inside, since := false, uint64(0)
	for _, c := range h.byUID[uid] {
		if !inside && since < to && c.version > from {
			return true // from since on, until this change
		}
		inside, since = !c.deleted && v.selects(c.state), c.version
	}
	return !inside && since < to
}
