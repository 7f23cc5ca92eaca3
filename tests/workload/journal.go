package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// Selector is of the label of all objects that are written here.
const Selector = "soak=yes"

// attemptAnnotation holds which attempt to write an object has made its state.
const attemptAnnotation = "soak.levelwire.example/attempt"

const (
	writers      = 4
	namesPerEach = 40
	// operation bounds one write: the server may be gone.
	operation = 5 * time.Second
)

// Namespaces are those of the objects.
var Namespaces = []string{"default", "kube-public"}

// Stamp identifies one state of one object.
type Stamp struct {
	UID     types.UID
	Version uint64
	Red     bool   // by its label
	Attempt string // which has written it
}

// State is a set of objects by namespace and name.
type State map[string]Stamp

// KeyOf is an object's key in a State.
func KeyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// StampOf is that of an object that a server has sent.
func StampOf(obj metav1.Object) Stamp {
	version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64) // 0 is no version at all
	return Stamp{obj.GetUID(), version, obj.GetLabels()["color"] == "red", obj.GetAnnotations()[attemptAnnotation]}
}

// Journal writes objects, each by one writer, and knows what the server has acknowledged.
// An attempt whose answer was lost may take effect later, for instance when a process
// that was stopped goes on; but only once, and only as it was.
type Journal struct {
	// Objects writes them. It may be replaced while there is no write.
	Objects client.Resource[*corev1.ConfigMap]
	// Known, if set, is called by a writer when it knows what its object is, because a write
	// was acknowledged or because it has read the object after an answer was lost; and before
	// it writes that object again.
	Known func(ctx context.Context, key string, now Stamp, exists, written bool)
	// Failed, if set, is called by a writer with what a server or a connection has failed with.
	Failed func(err error)
	// Pause is the longest that a writer pauses after a write; NewJournal sets 8 ms.
	Pause time.Duration
	// Writes is how many were acknowledged.
	Writes atomic.Int64

	attempts atomic.Int64
	gate     sync.RWMutex // held for reading during an operation

	mu      sync.Mutex
	known   State
	unknown map[string]bool // the last write's answer was lost
	lost    map[string]bool // attempts to create and update whose answers were lost, and that were not seen since
	deletes map[string]bool // attempts whose states were to be deleted, and the answer was lost
	wrong   error           // the first
}

// NewJournal returns a journal that has written nothing.
func NewJournal(objects client.Resource[*corev1.ConfigMap]) *Journal {
	return &Journal{Objects: objects, Pause: 8 * time.Millisecond, known: State{}, unknown: map[string]bool{}, lost: map[string]bool{}, deletes: map[string]bool{}}
}

// Write starts the writers; no two Write the same object.
func (j *Journal) Write(t *testing.T, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for w := range writers {
		random := rand.New(rand.NewPCG(seed, uint64(w+1)))
		running.Go(func() {
			for ctx.Err() == nil {
				namespace := Namespaces[random.IntN(len(Namespaces))]
				j.Once(ctx, random, namespace, fmt.Sprintf("writer-%d-%d", w, random.IntN(namesPerEach)))
				Wait(ctx, time.Duration(random.Int64N(int64(j.Pause))))
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// Wait waits for d or the end of ctx.
func Wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Quiet waits for the operations that are under way and keeps others from
// starting until release.
func (j *Journal) Quiet() (release func()) {
	j.gate.Lock()
	return j.gate.Unlock
}

// Once makes one change of one object.
func (j *Journal) Once(ctx context.Context, random *rand.Rand, namespace, name string) {
	j.gate.RLock()
	defer j.gate.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, operation) //passes: the server may be gone, and another write follows
	defer cancel()
	objects := j.Objects.Namespace(namespace)
	key := namespace + "/" + name
	last, exists, sure := j.lookUp(key)
	if !sure {
		obj, err := objects.Get(ctx, name, metav1.GetOptions{})
		j.found(ctx, key, obj, err)
		return
	}
	obj := j.attempt(random, namespace, name)
	switch {
	case !exists:
		made, err := objects.Create(ctx, obj, metav1.CreateOptions{})
		j.put(ctx, key, obj, made, err)
	case random.IntN(4) > 0:
		obj.UID, obj.ResourceVersion = last.UID, strconv.FormatUint(last.Version, 10)
		made, err := objects.Update(ctx, obj, metav1.UpdateOptions{})
		j.put(ctx, key, obj, made, err)
	default:
		err := objects.Delete(ctx, name, metav1.DeleteOptions{})
		j.deleted(ctx, key, last, err)
		if err == nil && random.IntN(2) == 0 { // at once under the same name
			made, err := objects.Create(ctx, obj, metav1.CreateOptions{})
			j.put(ctx, key, obj, made, err)
		}
	}
}

func (j *Journal) attempt(random *rand.Rand, namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{"soak": "yes", "color": []string{"red", "blue"}[random.IntN(2)]},
			Annotations: map[string]string{attemptAnnotation: strconv.FormatInt(j.attempts.Add(1), 10)},
		},
		Data: map[string]string{"n": strconv.Itoa(random.IntN(1000))},
	}
}

func (j *Journal) lookUp(key string) (last Stamp, exists, sure bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last, exists = j.known[key]
	return last, exists, !j.unknown[key]
}

// put notes the answer to a create or an update.
func (j *Journal) put(ctx context.Context, key string, tried, made *corev1.ConfigMap, err error) {
	if err != nil {
		j.fail(key, err, func() { j.lost[StampOf(tried).Attempt] = true })
		return
	}
	j.learn(ctx, key, StampOf(made), true, true)
}

// deleted notes the answer to a deletion.
func (j *Journal) deleted(ctx context.Context, key string, last Stamp, err error) {
	if err != nil {
		j.fail(key, err, func() { j.deletes[last.Attempt] = true })
		return
	}
	j.learn(ctx, key, Stamp{}, false, true)
}

// found notes what has become of an object whose last answer was lost.
func (j *Journal) found(ctx context.Context, key string, obj *corev1.ConfigMap, err error) {
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		j.fail(key, err, func() {})
		return
	}
	var now Stamp
	if exists {
		now = StampOf(obj)
	}
	if err := j.Check(key, now, exists); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.wrong = cmp.Or(j.wrong, err)
		return
	}
	j.learn(ctx, key, now, exists, false)
}

// fail notes that an answer was lost, and by note, what may happen because of that.
func (j *Journal) fail(key string, err error, note func()) {
	j.mu.Lock()
	j.unknown[key] = true
	note()
	j.mu.Unlock()
	if j.Failed != nil {
		j.Failed(err)
	}
}

// learn notes what an object is now.
func (j *Journal) learn(ctx context.Context, key string, now Stamp, exists, written bool) {
	if written {
		j.Writes.Add(1)
	}
	j.mu.Lock()
	delete(j.unknown, key)
	j.know(key, now, exists)
	j.mu.Unlock()
	if j.Known != nil {
		j.Known(ctx, key, now, exists, written)
	}
}

func (j *Journal) know(key string, now Stamp, exists bool) {
	if !exists {
		delete(j.known, key)
		return
	}
	j.known[key] = now
	delete(j.lost, now.Attempt) // it takes effect once
}

// Check compares an object, as a server has it, with what it has acknowledged. No write of
// that object may be under way.
func (j *Journal) Check(key string, got Stamp, exists bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.check(key, got, exists)
}

func (j *Journal) check(key string, got Stamp, exists bool) error {
	want, known := j.known[key]
	switch {
	case exists == known && got == want:
		return nil
	case exists && j.lost[got.Attempt] && got.Version > want.Version, !exists && j.deletes[want.Attempt]:
		j.know(key, got, exists)
		return nil
	case !known:
		return fmt.Errorf("%s was deleted and is %+v", key, got)
	case !exists:
		return fmt.Errorf("%s was acknowledged as %+v and does not exist", key, want)
	default:
		return fmt.Errorf("%s was acknowledged as %+v and is %+v", key, want, got)
	}
}

// compare compares what the server has with what it has acknowledged.
func (j *Journal) compare(server State) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.wrong != nil {
		return j.wrong
	}
	for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(server)), maps.Keys(j.known)) {
		got, ok := server[key]
		if j.unknown[key] {
			continue
		}
		if err := j.check(key, got, ok); err != nil {
			return err
		}
	}
	return nil
}
