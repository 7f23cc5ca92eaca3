package interop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A recorder is a handler of either informer's that notes its calls, for each
// object: "add 1 Pending", "update 1 Pending > 2 Pending", "resync 2
// Pending", "delete 2 Pending". Versions are left out of the notes, so that
// they can be compared between servers, and checked here.
type recorder struct {
	mu       sync.Mutex
	notes    map[string][]string
	versions map[string]int64
	wrong    []string
	changed  chan struct{} // closed and replaced at each note
	// hold, unless nil, keeps each call waiting until it is closed.
	hold chan struct{}
}

func newRecorder() *recorder {
	return &recorder{notes: map[string][]string{}, versions: map[string]int64{}, changed: make(chan struct{})}
}

// stateOf says which of its states an object is in: the step that wrote it, its
// app label, its phase if it has one, and whether it is ending.
func stateOf(obj metav1.Object) string {
	parts := []string{obj.GetAnnotations()["step"]}
	if app := obj.GetLabels()["app"]; app != "" {
		parts = append(parts, app)
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		parts = append(parts, string(obj.Status.Phase))
	case *unstructured.Unstructured:
		if phase, found, _ := unstructured.NestedString(obj.Object, "status", "phase"); found {
			parts = append(parts, phase)
		}
	}
	if obj.GetDeletionTimestamp() != nil {
		parts = append(parts, "ending")
	}
	return strings.Join(parts, " ")
}

func versionOf(obj metav1.Object) int64 {
	version, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return -1
	}
	return version
}

func (r *recorder) onAdd(obj metav1.Object, initial bool) {
	word := "add "
	if initial {
		word = "initial "
	}
	r.note(nil, obj, word+stateOf(obj))
}

func (r *recorder) onUpdate(before, obj metav1.Object) {
	if before.GetResourceVersion() == obj.GetResourceVersion() {
		r.note(before, obj, "resync "+stateOf(obj))
		return
	}
	r.note(before, obj, "update "+stateOf(before)+" > "+stateOf(obj))
}

func (r *recorder) onDelete(obj metav1.Object, finalStateKnown bool) {
	word := "delete "
	if !finalStateKnown {
		word = "lost "
	}
	r.note(nil, obj, word+stateOf(obj))
}

// note writes down what happened to an object and checks its versions: they
// grow, and each update starts where the call before it ended.
func (r *recorder) note(before, obj metav1.Object, what string) {
	if r.hold != nil {
		<-r.hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name, version := obj.GetName(), versionOf(obj)
	known := r.versions[name]
	switch {
	case before != nil && versionOf(before) != known:
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %s starts at version %d, the call before it ended at %d",
			name, what, versionOf(before), known))
	case version < known, version == known && !strings.HasPrefix(what, "resync ") && !strings.HasPrefix(what, "lost "):
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %s has version %d after %d", name, what, version, known))
	}
	r.versions[name] = version
	r.notes[name] = append(r.notes[name], what)
	close(r.changed)
	r.changed = make(chan struct{})
}

// of returns what was noted of an object so far.
func (r *recorder) of(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes[name])
}

// all returns everything that was noted, by object.
func (r *recorder) all() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string][]string, len(r.notes))
	for name, notes := range r.notes {
		all[name] = slices.Clone(notes)
	}
	return all
}

// until waits for a condition that depends on what was noted.
func (r *recorder) until(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s did not come; noted so far: %v", what, r.all())
		}
	}
}

// expect waits until an object's last note is the last one wanted, and then
// wants exactly these.
func (r *recorder) expect(ctx context.Context, t *testing.T, name string, want ...string) {
	t.Helper()
	last := want[len(want)-1]
	r.until(ctx, t, name+": "+last, func() bool {
		got := r.of(name)
		return len(got) >= len(want) && slices.Contains(got[len(want)-1:], last)
	})
	if got := r.of(name); !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// check fails the test if versions were out of order at any time.
func (r *recorder) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, wrong := range r.wrong {
		t.Error(wrong)
	}
}
