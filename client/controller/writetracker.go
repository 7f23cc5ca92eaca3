package controller

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// WriteTracker records the last write of a controller to each object, so that
// the controller does not decide on a state from before its own write. A write
// that is guarded by the object's resourceVersion needs no such record; a decision
// that reads several objects and writes one of them does. It is safe for concurrent use.
type WriteTracker struct {
	mu      sync.Mutex
	written map[types.UID]version
	now     func() time.Time
}

type version struct {
	resource string
	at       time.Time
}

// NewWriteTracker returns a WriteTracker without writes.
func NewWriteTracker() *WriteTracker {
	return &WriteTracker{written: map[types.UID]version{}, now: time.Now}
}

// Record notes the answer to a write.
func (v *WriteTracker) Record(obj metav1.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.written[obj.GetUID()] = version{obj.GetResourceVersion(), v.now()}
}

// IsStale says whether obj, from an informer, is older than the last write to
// it. It drops a write that the informer has delivered, and one that is older than
// five minutes.
func (v *WriteTracker) IsStale(obj metav1.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, ok := v.written[obj.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last.resource)
	if err == nil && order < 0 && v.now().Sub(last.at) < expectationTimeout {
		return true
	}
	delete(v.written, obj.GetUID())
	return false
}

// Forget drops the record of an object that is gone.
func (v *WriteTracker) Forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.written, uid)
}
