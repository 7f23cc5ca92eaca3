package mutation

import (
	"sync"
	"time"

	"github.com/levelwire/levelwire/internal/ring"
)

// What was replaced or forgotten is compared for retention, and once more after that, unless
// there are more than maxRetired of them: code that has read an object may write to it later, and
// what it then sends to the server comes back as the state that replaces the object.
const (
	retention  = 2 * time.Minute
	maxRetired = 10_000
)

// Detector knows objects that must not change. The zero value is empty and copies
// nothing: set Copy first. It is safe for concurrent use. Objects are pointers.
type Detector[T any] struct {
	// Copy returns a deep copy.
	Copy func(T) T

	mu      sync.Mutex
	known   map[any]*original[T] // by pointer
	byKey   map[string]any       // the pointer of each key's present object
	retired ring.Ring[retired]   // objects that are no key's present one, the oldest first
}

// retired is an object that was replaced or forgotten.
type retired struct {
	obj any // the pointer
	at  time.Time
}

// original is an object as it was.
type original[T any] struct {
	key  string
	mu   sync.Mutex // serializes comparisons; guards copy
	copy T
}

// Track keeps a copy of obj, which is the present object of this key from now on. It
// must not be in use yet.
func (d *Detector[T]) Track(key string, obj T) {
	o := &original[T]{key: key, copy: d.Copy(obj)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known, d.byKey = map[any]*original[T]{}, map[string]any{}
	}
	d.retire(key)
	d.known[obj], d.byKey[key] = o, obj
}

// Forget says that there is no present object of this key any more, and that last, the state
// that it ended with, may be read.
func (d *Detector[T]) Forget(key string, last T) {
	d.mu.Lock()
	_, known := d.known[last]
	d.mu.Unlock()
	if !known {
		d.Track(key, last)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retire(key)
}

// retire needs mu.
func (d *Detector[T]) retire(key string) {
	obj, ok := d.byKey[key]
	if !ok {
		return
	}
	delete(d.byKey, key)
	d.retired.Push(retired{obj, time.Now()})
	if d.retired.Len() > maxRetired {
		delete(d.known, d.retired.Pop().obj)
	}
}

// release lets go what was retired before a moment.
func (d *Detector[T]) release(before time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.retired.Len() > 0 && d.retired.Front().at.Before(before) {
		delete(d.known, d.retired.Pop().obj)
	}
}

// Check compares obj with its copy, if it is known, and returns where it differs.
// What it finds it returns once: the object as it is now becomes the copy.
func (d *Detector[T]) Check(obj T) (key, path string, mutated bool) {
	d.mu.Lock()
	o := d.known[obj]
	d.mu.Unlock()
	if o == nil {
		return "", "", false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if path, mutated = Difference(o.copy, obj); mutated {
		// Copies are compared with each other: a DeepCopy that is written by hand may make
		// an empty slice of a nil one, say, and that is no write.
		now := d.Copy(obj)
		path, mutated = Difference(o.copy, now)
		o.copy = now
	}
	return o.key, path, mutated
}

// CheckAll is Check for all objects. It calls report for those that were changed; once for
// several states of a key that differ in the same path, as they may share what was changed.
func (d *Detector[T]) CheckAll(report func(key, path string)) {
	defer d.release(time.Now().Add(-retention)) // they are compared once more below
	d.mu.Lock()
	objects := make([]T, 0, len(d.known))
	for obj := range d.known {
		objects = append(objects, obj.(T))
	}
	d.mu.Unlock()
	reported := map[[2]string]bool{}
	for _, obj := range objects {
		if key, path, mutated := d.Check(obj); mutated && !reported[[2]string{key, path}] {
			reported[[2]string{key, path}] = true
			report(key, path)
		}
	}
}
