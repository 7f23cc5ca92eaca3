package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// Differ is what a ListerWatcher implements, too, if it can send the server
// what the store holds, and receive what differs. [Resource] does.
type Differ[T client.Object] interface {
	// Difference is that of client.Resource.
	Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*client.Difference[T], error)
}

// Holder is what a Store implements, too, if it can say what it holds. Both are
// needed for a difference in place of a list.
type Holder[T client.Object] interface {
	// Held returns the objects that all calls so far have led to. The slice
	// belongs to the caller, the objects do not.
	Held() []T
	// Merge applies a diff relative to Held: the objects of Held that do not
	// exist any more, or not in this state, and those that exist and are not in
	// Held. Both slices then belong to the store.
	Merge(dropped, received []T, resourceVersion string) error
}

// DifferenceResult says what came of the question for a difference.
type DifferenceResult string

// The results.
const (
	DifferenceApplied     DifferenceResult = "applied"
	DifferenceListInstead DifferenceResult = "list-instead" // a list is better: nearly everything differs, for instance
	DifferenceUnsupported DifferenceResult = "unsupported"  // the server does not know what it is
	DifferenceFailed      DifferenceResult = "failed"       // it could not be had, or not be understood
)

// differing is what a Reflector knows of differences. It belongs to the
// goroutine of Run.
type differing[T client.Object] struct {
	differ Differ[T] // nil, as holder: a list is the only way
	holder Holder[T]
	due    bool // ask before the next list
	failed int  // in a row
	// spare: the list that follows is only another attempt. If it fails, too,
	// the next thing to ask for is a difference.
	spare bool
}

// newDiffering finds out whether the source and the store support differences.
func newDiffering[T client.Object](source ListerWatcher[T], store Store[T]) differing[T] {
	differ, can := source.(Differ[T])
	holder, holds := store.(Holder[T])
	if !can || !holds {
		return differing[T]{}
	}
	return differing[T]{differ: differ, holder: holder}
}

// expect notes that no watch can resume from the resourceVersion, because of
// cause. Sending what the store holds helps only if nothing but time has
// passed: when resourceVersions went back, equal ones do not mean equal
// objects.
func (d *differing[T]) expect(cause ListCause) {
	d.due, d.failed, d.spare = d.differ != nil && cause == ListExpired, 0, false
}

// listFailed is called when a list has failed for another reason than the
// request itself.
func (d *differing[T]) listFailed() { d.due = d.spare }

// difference asks for one, if it is due, and gives the store the result. If it
// returns neither true nor an error, a list has to follow.
func (r *Reflector[T]) difference(ctx context.Context) (done bool, err error) {
	if !r.differing.due {
		return false, nil
	}
	version := r.LastSyncResourceVersion()
	held := r.differing.holder.Held()
	if len(held) == 0 || unset(version) {
		r.differing.due = false
		return false, nil
	}
	r.asked = time.Now()
	limited, release := r.limited(ctx)
	defer release()
	d, err := differenceOf(limited, r.differing.differ, held, version)
	if err == nil && older(d.ResourceVersion, version) {
		err = errOlder
	}
	if err == nil && unset(d.ResourceVersion) {
		err = &client.DecodeError{What: "difference", Err: errNoVersion}
	}
	if err == nil {
		err = checkNames("difference", d.Received)
	}
	if err == nil {
		return true, r.merge(d)
	}
	if ctx.Err() != nil {
		return false, because(limited, err)
	}
	result := resultOf(err)
	r.counts.difference(result)
	err = because(limited, err)
	passing := result == DifferenceFailed && mayPass(err)
	if !unreachable(err) { // a failed connection says nothing about differences
		r.differing.failed++
	}
	if passing && r.differing.failed < maxFailures {
		return false, err // and it is asked for again
	}
	r.differing.due, r.differing.spare = false, passing
	r.opts.Logger.Info("listing in place of a difference", "result", result, "error", err)
	return false, nil
}

func resultOf(err error) DifferenceResult {
	switch {
	case errors.Is(err, client.ErrNoDifference):
		return DifferenceUnsupported
	case errors.Is(err, client.ErrListInstead):
		return DifferenceListInstead
	}
	return DifferenceFailed
}

// mayPass reports whether the same request may succeed later.
func mayPass(err error) bool {
	return !undecodable(err) && !errors.Is(err, errOlder) && !tooLarge(err)
}

// merge gives the store a difference.
func (r *Reflector[T]) merge(d *client.Difference[T]) error {
	received := len(d.Received)
	r.learned(d.ResourceVersion)
	r.counts.merged(int64(received), d.Bytes) // before the store has it: a reader of both sees the cause first
	if err := r.differing.holder.Merge(d.Dropped, d.Received, d.ResourceVersion); err != nil {
		return &storeError{fmt.Errorf("store: difference of %d objects to resourceVersion %q: %w", received, d.ResourceVersion, err)}
	}
	r.opts.Logger.Debug("merged a difference", "kept", len(d.Kept), "received", received, "bytes", d.Bytes, "resourceVersion", d.ResourceVersion)
	r.complete(d.ResourceVersion)
	return nil
}

// Difference implements Differ.
func (e endpoint[T]) Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*client.Difference[T], error) {
	if err := e.change(&opts); err != nil {
		return nil, err
	}
	return e.resource.Difference(ctx, held, opts)
}
