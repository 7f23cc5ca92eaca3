package informer

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Freshness says how old an informer's view is.
type Freshness struct {
	// Version is LastSyncResourceVersion: the cache surely shows every change up
	// to it.
	Version string
	// AsOf is a moment at which the cache showed everything that the server had
	// sent: when it last sent something that was understood, be it a bookmark (see
	// reflector.Stats.LastContact), or, while changes are queued, when none were.
	// Zero: the cache never was complete.
	//
	// Servers send bookmarks about once a minute, so a quiet view of a minute's
	// age is usual. Without them it is that of the watch, which is opened again after
	// reflector.Options.SilenceTimeout. A watch that was only opened makes no view
	// newer: what was missed is still on its way.
	AsOf time.Time
	// Age is the time since AsOf; the longest there is if AsOf is zero.
	Age time.Duration
	// Queued is how many objects have changes that the cache does not
	// show yet.
	Queued int
	// Synced: a list is complete, or the server has confirmed the restored state.
	Synced bool
	// Restored: the cache was read from disk, and the server has not confirmed
	// yet that a watch can resume from it. Silence confirms nothing.
	Restored bool
	// Listing: the server no longer has the resourceVersion, and the list, or the
	// difference, that follows is not complete yet.
	Listing bool
	// GoneSince is since when the server says that it has no such resource, once
	// that is believed (reflector.Options.GoneAfter): the cache is empty, and
	// everything is listed anew when the resource is back. Zero while it has.
	GoneSince time.Time
}

// Freshness returns how old the view is at this moment.
func (i *SharedInformer[T]) Freshness() Freshness {
	f := Freshness{Version: i.fifo.Processed(), Synced: i.HasSynced(), Age: math.MaxInt64}
	i.mu.Lock()
	saved, confirmed := i.restoredAsOf, i.confirmed
	i.mu.Unlock()
	f.Restored = !saved.IsZero() && !confirmed
	before, listing := i.listing()
	stats := i.Stats()
	contact := stats.Reflector
	f.Queued = stats.Queued
	f.GoneSince = contact.GoneSince
	f.Listing = listing && f.Synced && f.GoneSince.IsZero()
	switch {
	case f.Restored:
		f.AsOf = saved
	case !f.Synced:
		return f
	case listing && !before.IsZero():
		f.AsOf = before
	default: // a first list, too, is applied: the informer is synced
		f.AsOf = contact.LastContact
	}
	if f.Queued > 0 {
		f.AsOf = earlier(f.AsOf, i.moments.idleAt())
	}
	if !f.AsOf.IsZero() {
		f.Age = max(0, time.Since(f.AsOf)) // what was saved may be of a clock that was ahead
	}
	return f
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Healthy returns nil if the informer runs and its view is complete, confirmed by the
// server, which has the resource, and not older than limit. Otherwise it says
// what is wrong. A limit below a few minutes alarms without need: see
// Freshness.AsOf.
//
// It is for readiness and for alerts, never for liveness: a server that is away
// makes the views of all its clients old, and a restart would only empty their
// caches. Package health serves it as /readyz.
func (i *SharedInformer[T]) Healthy(limit time.Duration) error {
	i.mu.Lock()
	phase, failed := i.phase, i.failed
	i.mu.Unlock()
	f := i.Freshness()
	switch {
	case failed != nil:
		return failed
	case phase == stopped:
		return fmt.Errorf("informer %s has stopped: its view gets older and older", i.name)
	case f.Restored:
		return i.because("informer %s: the view was read from disk, is %v old, and the server has not confirmed it", i.name, f.Age.Round(time.Second))
	case !f.GoneSince.IsZero():
		return fmt.Errorf("informer %s: the server has not had the resource since %s", i.name, f.GoneSince.UTC().Format(time.RFC3339))
	case !f.Synced:
		return i.because("informer %s: there is no complete list yet", i.name)
	case f.Age > limit && f.AsOf.IsZero():
		return fmt.Errorf("informer %s: the first list is still being applied", i.name)
	case f.Age > limit:
		return i.because("informer %s: the view is %v old (limit %v), at resourceVersion %s, %d changes queued", i.name, f.Age.Round(time.Second), limit, f.Version, f.Queued)
	default:
		return nil
	}
}

// because is fmt.Errorf, with the last error of the reflector, if it did not succeed since.
func (i *SharedInformer[T]) because(format string, args ...any) error {
	if err := i.Stats().Reflector.LastError; err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return fmt.Errorf(format, args...)
}

// Healthy joins what [SharedInformer.Healthy] says of all informers that were
// started, by the factory or the program. It is for readiness, too. If there are
// informers and none was started, that is an error: a program that is asked before it
// has called [Factory.Start] is not ready. Without informers it returns nil, as they may
// all be made on first use.
func (f *Factory) Healthy(limit time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []error
	for _, i := range f.order {
		if f.started[i] != nil || i.hasStarted() {
			all = append(all, i.Healthy(limit))
		}
	}
	if len(all) == 0 && len(f.order) > 0 {
		return errNotStarted
	}
	return errors.Join(all...)
}

// moments holds moments that Freshness needs, as the time since begun plus one;
// 0: none. Counted like that they cannot jump when the clock is set.
type moments struct {
	begun time.Time    // constant
	idle  atomic.Int64 // nothing was queued
}

func (m *moments) settled() { m.idle.Store(m.offset(time.Now())) }

func (m *moments) idleAt() time.Time { return m.at(m.idle.Load()) }

func (m *moments) offset(t time.Time) int64 { return int64(t.Sub(m.begun)) + 1 }

func (m *moments) at(offset int64) time.Time {
	if offset == 0 {
		return time.Time{}
	}
	return m.begun.Add(time.Duration(offset - 1))
}
