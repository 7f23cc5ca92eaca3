package controller

import (
	"context"
	"errors"
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
func (v *WriteTracker) IsStale(obj metav1.Object) bool { return v.lacks(obj) != "" }

var errStale = errors.New("an object is older than the controller's last write to it")

// Current returns nil if none of the objects, from informers, IsStale. A ReconcileFunc has to return
// the error, as that of Consistent: the key is reconciled again once the informers show the write. They ask the
// server for it, and no worker waits.
func (v *WriteTracker) Current(ctx context.Context, objs ...metav1.Object) error {
	var written string
	for _, obj := range objs {
		written = newest(written, v.lacks(obj))
	}
	if written == "" {
		return nil
	}
	if call, ok := ctx.Value(consistencyKey{}).(consistency); ok {
		if err := call.check(written, nil); err != nil {
			return err
		}
	}
	return errStale // no informer of the controller lacks the version: the objects are from elsewhere
}

// lacks returns the version of the last write to obj, if obj is older, and drops a write that is no longer needed.
func (v *WriteTracker) lacks(obj metav1.Object) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, ok := v.written[obj.GetUID()]
	if !ok {
		return ""
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last.resource)
	if err == nil && order < 0 && v.now().Sub(last.at) < expectationTimeout {
		return last.resource
	}
	delete(v.written, obj.GetUID())
	return ""
}

// Forget drops the record of an object that is gone.
func (v *WriteTracker) Forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.written, uid)
}
