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

// lives says whether two states are of one life of an object.
func (s state) lives(other state) bool { return s.uid == other.uid }

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

// truth is the history of all pods as the store tells it, from its beginning.
type truth struct {
	mu      sync.Mutex
	changes []change
	reached uint64 // everything up to here is known
	failed  error
	moved   chan struct{} // closed and replaced when reached grows
}

// follow reads a store's changes until ctx ends. Nobody may compact what it has
// not read: see await.
func follow(ctx context.Context, t *testing.T, store storage.Watcher) *truth {
	t.Helper()
	truth := &truth{moved: make(chan struct{})}
	stream, err := store.Watch(ctx, podPrefix, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			batch, err := stream.Next()
			truth.note(batch, err)
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(reading.Wait)
	return truth
}

func (h *truth) note(batch storage.Batch, err error) {
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

func (h *truth) add(e storage.Event) error {
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
func (h *truth) await(ctx context.Context, revision uint64) error {
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
func (h *truth) upToNow(ctx context.Context, store storage.Reader) (past, error) {
	current, err := retry(ctx, store.Current)
	if err == nil {
		err = h.await(ctx, uint64(current))
	}
	if err != nil {
		return past{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return newPast(slices.Clone(h.changes), uint64(current)), nil
}

// retry calls f until it succeeds: a store whose server has been killed is back
// soon.
func retry[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	for {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
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

// past is a history that is complete up to a version.
type past struct {
	changes []change // ascending
	until   uint64
	lives   map[types.UID][]change
}

func newPast(changes []change, until uint64) past {
	p := past{changes: changes, until: until, lives: map[types.UID][]change{}}
	for _, c := range changes {
		p.lives[c.uid] = append(p.lives[c.uid], c)
	}
	return p
}

// at returns the pods of a view after a version.
func (p past) at(version uint64, v view) map[string]state {
	all := map[string]state{}
	for _, c := range p.changes {
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
func (p past) now(v view) map[string]state { return p.at(p.until, v) }

// wrote returns whether a state was ever written.
func (p past) wrote(s state) bool {
	for _, c := range p.lives[s.uid] {
		if !c.deleted && c.state == s {
			return true
		}
	}
	return false
}

// death returns the version at which a life ended.
func (p past) death(uid types.UID) (uint64, bool) {
	life := p.lives[uid]
	if n := len(life); n > 0 && life[n-1].deleted {
		return life[n-1].version, true
	}
	return 0, false
}

// outside says whether there was a moment in [from, to) at which a life was not
// in a view, because it had left, ended, or not begun.
func (p past) outside(uid types.UID, v view, from, to uint64) bool {
	inside, since := false, uint64(0)
	for _, c := range p.lives[uid] {
		if !inside && since < to && c.version > from {
			return true // from since on, until this change
		}
		inside, since = !c.deleted && v.selects(c.state), c.version
	}
	return !inside && since < to
}
