package reflector

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// absence is what a Reflector knows of a resource that the server says it does
// not have. It belongs to the goroutine of Run.
type absence struct {
	since time.Time // of the first 404 of a series; zero: the last answer was none
	gone  bool      // the series has lasted for Options.GoneAfter
}

// present notes that a list was complete or a watch was opened: the resource
// is there.
func (r *Reflector[T]) present() {
	if r.absence.gone {
		r.counts.list(ListReturned)
		r.counts.gone(time.Time{})
		r.opts.Logger.Info("the resource is back", "absent", time.Since(r.absence.since).Round(time.Second))
	}
	r.absence = absence{}
	r.counts.failed(nil)
}

// absent notes an error that ended an attempt. When the server has said for
// long enough that there is no such resource, and nothing else, the store is
// emptied: what it held does not exist any more. A server that cannot be
// reached, or refuses, says nothing about that.
//
// No resourceVersion remains to resume from: a resource that has this name
// later is listed.
func (r *Reflector[T]) absent(err error) error {
	if !notServed(err) {
		return nil
	}
	now := time.Now()
	if r.absence.since.IsZero() {
		r.absence.since = now
	}
	if r.absence.gone || r.opts.GoneAfter < 0 || now.Sub(r.absence.since) < r.opts.GoneAfter {
		return nil
	}
	r.absence.gone = true
	r.counts.gone(r.absence.since)
	r.opts.Logger.Warn("the server does not have the resource; it is asked on until it has",
		"since", r.absence.since, "resourceVersion", r.LastSyncResourceVersion())
	known := r.LastSyncResourceVersion() != ""
	r.synced, r.fresh, r.undecodable = false, true, nil
	if !known {
		return nil
	}
	if err := r.store.Replace(nil, ""); err != nil {
		return &storeError{err}
	}
	r.reached("")
	return nil
}

// notServed reports whether the server does not serve the resource at all: it
// answers lists and watches of a resource that it serves never with "not
// found", not even in a namespace that does not exist.
func notServed(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}
