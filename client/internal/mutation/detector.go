package mutation

import (
	"sync"
)

// Detector knows objects that must not change. The zero value is empty and copies
// nothing: set Copy first. It is safe for concurrent use. Objects are pointers.
type Detector[T any] struct {
	// Copy returns a deep copy.
	Copy func(T) T

	mu    sync.Mutex
	known map[any]*original[T] // by pointer
	byKey map[string]any       // the pointer of each key's present object
}

// original is an object as it was.
type original[T any] struct {
	key  string
	mu   sync.Mutex // serializes comparisons; guards copy
	copy T
}

// Track keeps a copy of obj, in place of that of the object that had this key. The
// object must not be in use yet.
func (d *Detector[T]) Track(key string, obj T) {
	o := &original[T]{key: key, copy: d.Copy(obj)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known, d.byKey = map[any]*original[T]{}, map[string]any{}
	}
	d.forget(key)
	d.known[obj], d.byKey[key] = o, obj
}

// Forget lets the object with this key go.
func (d *Detector[T]) Forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(key)
}

func (d *Detector[T]) forget(key string) {
	if obj, ok := d.byKey[key]; ok {
		delete(d.known, obj)
		delete(d.byKey, key)
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
		o.copy = d.Copy(obj)
	}
	return o.key, path, mutated
}

// CheckAll is Check for all objects. It calls report for those that were changed.
func (d *Detector[T]) CheckAll(report func(key, path string)) {
	d.mu.Lock()
	objects := make([]T, 0, len(d.known))
	for obj := range d.known {
		objects = append(objects, obj.(T))
	}
	d.mu.Unlock()
	for _, obj := range objects {
		if key, path, mutated := d.Check(obj); mutated {
			report(key, path)
		}
	}
}
