package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

const (
	ours         = "soak=yes" // label of all objects that are written here
	writers      = 4
	namesPerEach = 40
	// operation bounds one write: the server may be gone.
	operation = 5 * time.Second
)

var namespaces = []string{"default", "kube-public"}

// stamp identifies one state of one object.
type stamp struct {
	uid     types.UID
	version uint64
	red     bool
}

// state is a set of objects by namespace and name.
type state map[string]stamp

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

func stampOf(obj metav1.Object) stamp {
	version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64) // 0 is no version at all
	return stamp{obj.GetUID(), version, obj.GetLabels()["color"] == "red"}
}

// journal writes objects and knows what the server has acknowledged.
type journal struct {
	objects client.Resource[*corev1.ConfigMap]
	gate    sync.RWMutex // held for reading during an operation
	writes  atomic.Int64 // acknowledged

	mu      sync.Mutex
	known   state
	unknown map[string]bool // the last write's answer was lost
}

func newJournal(c *client.Client) *journal {
	return &journal{objects: client.For[*corev1.ConfigMap](c), known: state{}, unknown: map[string]bool{}}
}

// write starts the writers; no two write the same object.
func (j *journal) write(t *testing.T, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for w := range writers {
		random := rand.New(rand.NewPCG(seed, uint64(w+1)))
		running.Go(func() {
			for ctx.Err() == nil {
				namespace := namespaces[random.IntN(len(namespaces))]
				j.once(ctx, random, namespace, fmt.Sprintf("writer-%d-%d", w, random.IntN(namesPerEach)))
				wait(ctx, time.Duration(random.IntN(8))*time.Millisecond)
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// quiet waits for the operations that are under way and keeps others from
// starting until release.
func (j *journal) quiet() (release func()) {
	j.gate.Lock()
	return j.gate.Unlock
}

// once makes one change of one object.
func (j *journal) once(ctx context.Context, random *rand.Rand, namespace, name string) {
	j.gate.RLock()
	defer j.gate.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, operation)
	defer cancel()
	objects := j.objects.Namespace(namespace)
	key := namespace + "/" + name
	last, exists, sure := j.lookUp(key)
	if !sure {
		obj, err := objects.Get(ctx, name, metav1.GetOptions{})
		j.learn(key, obj, err, apierrors.IsNotFound(err))
		return
	}
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		"soak": "yes", "color": []string{"red", "blue"}[random.IntN(2)],
	}}, Data: map[string]string{"n": strconv.Itoa(random.IntN(1000))}}
	switch {
	case !exists:
		made, err := objects.Create(ctx, obj, metav1.CreateOptions{})
		j.learn(key, made, err, false)
	case random.IntN(4) > 0:
		obj.UID, obj.ResourceVersion = last.uid, strconv.FormatUint(last.version, 10)
		made, err := objects.Update(ctx, obj, metav1.UpdateOptions{})
		j.learn(key, made, err, false)
	default:
		err := objects.Delete(ctx, name, metav1.DeleteOptions{})
		j.learn(key, nil, err, err == nil)
		if err == nil && random.IntN(2) == 0 { // at once under the same name
			made, err := objects.Create(ctx, obj, metav1.CreateOptions{})
			j.learn(key, made, err, false)
		}
	}
}

func (j *journal) lookUp(key string) (last stamp, exists, sure bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last, exists = j.known[key]
	return last, exists, !j.unknown[key]
}

// learn notes an answer: the object there is now, or that there surely is none.
func (j *journal) learn(key string, obj *corev1.ConfigMap, err error, none bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case none:
		delete(j.known, key)
		delete(j.unknown, key)
	case err == nil:
		j.writes.Add(1)
		j.known[key] = stampOf(obj)
		delete(j.unknown, key)
	default:
		j.unknown[key] = true
	}
}

// compare compares what the server has with what it has acknowledged.
func (j *journal) compare(server state) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key, want := range j.known {
		if got, ok := server[key]; !j.unknown[key] && (!ok || got != want) {
			return fmt.Errorf("%s was acknowledged as %v and is %v, %v", key, want, got, ok)
		}
	}
	for key, got := range server {
		if _, ok := j.known[key]; !ok && !j.unknown[key] {
			return fmt.Errorf("%s was deleted and is %v", key, got)
		}
	}
	return nil
}
