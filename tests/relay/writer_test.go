package relay

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/conformance/history"
)

// writePause is how long a writer waits between two writes.
const writePause = 3 * time.Millisecond

// writer makes writes to keys that are its own. It is used by one goroutine at a time.
type writer struct {
	*recorder
	to      client.Resource[*corev1.ConfigMap]
	number  int
	count   int // of the writes so far
	random  *rand.Rand
	present map[string]*corev1.ConfigMap
	last    map[string]uint64 // the version of the last write of a key
	deleted map[string]int    // the index of a deletion that no write of the key has followed
}

func (r *recorder) newWriter(to client.Resource[*corev1.ConfigMap], number int) *writer {
	return &writer{
		recorder: r, to: to, number: number, random: rand.New(rand.NewPCG(uint64(number), 7)),
		present: map[string]*corev1.ConfigMap{}, last: map[string]uint64{}, deleted: map[string]int{},
	}
}

// run writes until it is stopped. A request may be lost with its answer: the object then
// shows whether it was done.
func (w *writer) run(stop context.Context) {
	for ; stop.Err() == nil; w.count++ {
		key := fmt.Sprintf("w%d-%d", w.number, w.random.IntN(12))
		if had := w.present[key]; had != nil && w.random.IntN(4) == 0 {
			w.delete(had)
		} else {
			w.put(key, had)
		}
		timer := time.NewTimer(writePause)
		<-timer.C
	}
}

func (w *writer) delete(had *corev1.ConfigMap) {
	key := had.Name
	w.settle(func() error {
		err := w.to.Delete(context.Background(), key, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &had.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
	delete(w.present, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted[key] = len(w.done)
	w.done = append(w.done, history.Write{Key: key, Deletes: true, After: w.last[key]})
}

// put creates an object, or updates the one that is there.
func (w *writer) put(key string, had *corev1.ConfigMap) {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: key, Namespace: metav1.NamespaceDefault},
		Data:       map[string]string{"content": fmt.Sprintf("%d.%d", w.number, w.count)},
	}
	if w.random.IntN(2) == 0 {
		m.Labels = map[string]string{"color": "red"}
	}
	if had != nil {
		m.ResourceVersion = had.ResourceVersion
	}
	w.settle(func() (err error) {
		var written *corev1.ConfigMap
		if had == nil {
			written, err = w.to.Create(context.Background(), m, metav1.CreateOptions{})
		} else {
			written, err = w.to.Update(context.Background(), m, metav1.UpdateOptions{})
		}
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			written, err = w.to.Get(context.Background(), key, metav1.GetOptions{})
		}
		if err == nil && written.Data["content"] != m.Data["content"] {
			return fmt.Errorf("%s has %v, not %s", key, written.Data, m.Data["content"])
		}
		if err == nil {
			m = written
		}
		return err
	})
	w.present[key] = m
	revision := parseRevision(m.ResourceVersion)
	w.mu.Lock()
	defer w.mu.Unlock()
	if i, ok := w.deleted[key]; ok {
		w.done[i].Before = revision
		delete(w.deleted, key)
	}
	w.last[key] = revision
	w.done = append(w.done, history.Write{Key: key, State: stateOf(m), Revision: revision})
	w.acked = append(w.acked, acknowledged{time.Now(), revision})
	w.until = max(w.until, revision)
}

// saved returns what the writer has written and not deleted.
func (w *writer) saved() map[string]*corev1.ConfigMap { return maps.Clone(w.present) }

// restored has the writer go on from a state that it had before, which a restored server lists
// at a version. That undoes what was written since, as writes would.
func (w *writer) restored(saved, listed map[string]*corev1.ConfigMap, version uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.deleted)
	lost := w.present
	w.present = map[string]*corev1.ConfigMap{}
	for key := range w.last {
		had, is := saved[key], listed[key]
		switch {
		case (had == nil) != (is == nil), had != nil && had.Data["content"] != is.Data["content"]:
			w.t.Errorf("%s was %v when it was saved, and is %v after the restore", key, had, is)
		case is != nil:
			w.present[key], w.last[key] = is, parseRevision(is.ResourceVersion)
			w.done = append(w.done, history.Write{Key: key, State: stateOf(is), Revision: w.last[key]})
		case lost[key] != nil:
			w.done = append(w.done, history.Write{Key: key, Deletes: true, After: w.last[key], Before: version})
		}
	}
}
