package reflector

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/contain"
)

// Discoverer is what a ListerWatcher implements, too, if it can ask the server's
// discovery whether the server serves the resource. [Resource] does. A Reflector
// asks before it empties its store; see Options.GoneAfter.
type Discoverer interface {
	// Served returns false without an error only if the server has said so.
	// errors.ErrUnsupported means that it cannot be asked. The Reflector then
	// believes only a 404 that the server has sent as a Status.
	Served(ctx context.Context) (bool, error)
}

// absence is what a Reflector knows of a resource that the server says it does
// not have. It belongs to the goroutine of Run.
type absence struct {
	since time.Time // of the first 404 of a series; zero: the last answer was none
	gone  bool      // the series has lasted for Options.GoneAfter
	noted string    // the last error, if it was a 404: it is logged when it changes
}

// present notes that a list was complete or a watch was opened: the resource
// is there.
func (r *Reflector[T]) present() {
	if r.absence.gone {
		r.counts.list(ListReturned)
		r.counts.gone(time.Time{})
		r.opts.Logger.Info("the resource is back", "absent", time.Since(r.absence.since).Round(time.Second))
	}
	r.absence, r.outage = absence{}, outage{}
	r.counts.failed(nil)
}

// absent notes an error that ended an attempt. When the server has said for
// long enough that there is no such resource, and nothing else, and its
// discovery confirms that, the store is emptied: what it held does not exist any
// more. Any other failure begins the wait anew: a server that refuses, cannot be
// reached, or is hidden by a proxy's page may be one that starts, and has the resource
// a moment later.
//
// No resourceVersion remains to resume from: a resource that has this name
// later is listed.
func (r *Reflector[T]) absent(ctx context.Context, err error) error {
	if !r.notServed(err) {
		if !r.absence.gone {
			r.absence.since = time.Time{}
		}
		return nil
	}
	now := time.Now()
	if r.absence.since.IsZero() {
		r.absence.since = now
	}
	if r.absence.gone || r.opts.GoneAfter < 0 || now.Sub(r.absence.since) < r.opts.GoneAfter {
		return nil
	}
	if !r.confirmAbsence(ctx, err) {
		r.absence.since = now // it is asked again after another GoneAfter
		return nil
	}
	r.absence.gone = true
	r.counts.gone(r.absence.since)
	r.opts.Logger.Warn("the server does not have the resource; it is asked on until it has",
		"since", r.absence.since, "resourceVersion", r.LastSyncResourceVersion())
	known := r.LastSyncResourceVersion() != "" || r.unversioned
	r.unversioned = false
	r.synced, r.fresh, r.ends, r.unread = false, true, endings{}, ""
	if !known {
		return nil
	}
	r.deletions.emptied(r.LastSyncResourceVersion())
	if err := r.store.Replace(nil, ""); err != nil {
		return &storeError{err}
	}
	r.relisted("")
	return nil
}

// confirmAbsence asks the server's discovery, which must say that there is no
// such resource. If the source cannot ask, a Status says it: notFound, the last
// error, may instead be derived from the page of a proxy.
func (r *Reflector[T]) confirmAbsence(ctx context.Context, notFound error) bool {
	if r.discoverer == nil {
		return true
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.ListTimeout, errSilent)
	defer cancel()
	var served bool
	var err error
	if panicked := contain.Call("Served", func() { served, err = r.discoverer.Served(ctx) }); panicked != nil {
		served, err = false, panicked
	}
	if errors.Is(err, errors.ErrUnsupported) {
		r.discoverer = nil
		return client.IsStatus(notFound)
	}
	if err == nil && !served {
		return true
	}
	r.opts.Logger.Warn("the server answers that it does not have the resource, but its discovery does not confirm that: the cache is kept",
		"discovered", served, "error", err, "since", r.absence.since)
	return false
}

// notServed reports whether an error says that the server does not serve the
// resource at all: a server answers lists and watches of a resource that it serves
// never with "not found", not even in a namespace that does not exist. Without
// discovery to confirm it, only a Status can say so.
func (r *Reflector[T]) notServed(err error) bool {
	return apierrors.IsNotFound(err) && (r.discoverer != nil || client.IsStatus(err))
}
