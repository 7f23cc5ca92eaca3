package reflector

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/transfer"
)

// resume opens a watch from the resourceVersion that the store has reached.
func (r *Reflector[T]) resume(ctx context.Context) (*session[T], error) {
	version := r.LastSyncResourceVersion()
	s, err := r.open(ctx, metav1.ListOptions{ResourceVersion: version}, r.opts.SilenceTimeout)
	if err != nil {
		return nil, err
	}
	s.synthetic, r.followed = unset(version), version
	if r.opts.PollTimeout == 0 && !r.unversioned { // a poll has asked for nothing yet
		r.counts.watchOpened(s.opened, s.received)
	}
	return s, nil
}

// follow writes a stream's events to the store until the stream ends, and
// returns why it did.
func (r *Reflector[T]) follow(s *session[T]) error {
	for {
		ev, err := s.next()
		if err != nil {
			return err
		}
		if err := r.apply(s, ev); err != nil {
			return err
		}
	}
}

// heard notes that the watch has brought something that is no repetition. What arrived
// slowly says nothing of the time since it began to.
func (r *Reflector[T]) heard(s *session[T]) {
	at := arrivedAt(s.received)
	if polls, ok := s.stream.(*polls[T]); ok {
		at = polls.asOf // the whole answer was waited for
	}
	r.counts.contact(at)
}

// arrivedAt is when the last event arrived, or began to.
func arrivedAt(received *transfer.Transfer) time.Time {
	if since, partial := received.PartialSince(); partial {
		return since
	}
	return time.Now()
}

// isNews reports whether an event shows that the stream goes on. One of the version that was
// reached already, or of none to go on from, may be what a server begins each stream with, a stuck one
// too: a bookmark, or an event without such a version, says something only after a while, and one of the version
// reached never.
// After a list without a version nothing does: the watch may have begun later.
func (r *Reflector[T]) isNews(s *session[T], ev client.WatchEvent[T], at position) bool {
	switch {
	case r.unversioned:
		return false
	case s.synthetic:
		return true
	case at.version == at.reached && ev.Type != apiwatch.Bookmark:
		return false
	case at.version == "", at.version == at.reached, !at.leads:
		return time.Since(s.opened) >= tooShort
	default:
		return true
	}
}

// apply writes one event to the store and moves the version.
func (r *Reflector[T]) apply(s *session[T], ev client.WatchEvent[T]) error {
	at := positionOf(versionOf(ev.Object), r.LastSyncResourceVersion())
	version := at.version
	r.unknown = 0
	if ev.Type == apiwatch.Bookmark && at.behind && !older(version, r.followed) {
		r.counts.bookmark() // RequestProgress knew more, from another server
		r.followed = version
		r.heard(s)
		return nil
	}
	if !s.synthetic && at.behind {
		if r.opts.Filtered && ev.Type == apiwatch.Added {
			return r.write(ev) // it has become visible; a bookmark follows
		}
		return r.late(s, ev, version)
	}
	news := r.isNews(s, ev, at)
	if ev.Type == apiwatch.Bookmark {
		if version != "" && !unset(at.reached) && isNumber(version) != isNumber(at.reached) {
			return &client.DecodeError{What: "event", Err: fmt.Errorf("a bookmark of resourceVersion %.40q follows %.40q", version, at.reached)}
		}
		r.counts.bookmark()
	} else if err := r.write(ev); err != nil {
		return err
	}
	if news {
		r.heard(s)
	}
	if s.synthetic {
		if ev.Type == apiwatch.Added {
			return nil
		}
		s.synthetic = false // changes follow the state, and bookmarks both
	}
	if version != "" && !r.unversioned && at.leads {
		r.followed = version
		r.reached(version)
	}
	return nil
}

// late handles an event from the past: the store already has the state up to the
// resourceVersion. An event that says more of its object than the store holds is
// applied, as servers with a storage of their own do not order the versions of different
// objects, and may send a deletion with the version of the last change. Others are
// dropped. A bookmark from the past means that the server itself went back, as one
// restored from a backup does; then only a list shows what exists. So it is for a
// deletion if the store cannot say what it holds, or no version of it, and for an object that
// may have been deleted longer ago than is remembered.
func (r *Reflector[T]) late(s *session[T], ev client.WatchEvent[T], version string) error {
	more, known := false, false
	if ev.Type != apiwatch.Bookmark && r.getter != nil {
		var err error
		if more, known, err = r.writeMore(ev, version); err != nil {
			return err
		}
	}
	if more {
		r.heard(s)
		return nil
	}
	r.counts.stale()
	if known && r.doubts(ev) {
		return &rewoundError{from: r.LastSyncResourceVersion(), to: version}
	}
	if !known && (ev.Type == apiwatch.Bookmark || ev.Type == apiwatch.Deleted) {
		return &rewoundError{from: r.LastSyncResourceVersion(), to: version}
	}
	return nil
}

// writeMore writes an event that says more of its object than the store holds. Where others write to the store,
// it is judged again in one step with the write: meanwhile the object may have got a later state, or may have
// gone, and would be set back for as long as nothing happens to it.
func (r *Reflector[T]) writeMore(ev client.WatchEvent[T], version string) (more, known bool, err error) {
	state := identityOf(ev.Object) // before the store changes it
	held, exists := r.getter.Get(ev.Object)
	more, known = r.saysMore(ev.Type, state, version, held, exists)
	switch {
	case !more:
		return false, known, nil
	case r.conditional == nil || !isChange(ev.Type):
		return true, known, r.write(ev)
	}
	err = r.conditional.WriteIf(ev, func(held T, exists bool) bool {
		more, known = r.saysMore(ev.Type, state, version, held, exists)
		return more
	})
	if more || err != nil {
		err = r.wrote(ev, err)
	}
	return more, known, err
}

func isChange(event apiwatch.EventType) bool {
	return event == apiwatch.Added || event == apiwatch.Modified || event == apiwatch.Deleted
}

// saysMore judges an event by its object alone: whether it is later than what the store
// holds of it. An object that the store does not hold is new, unless its deletion is known.
// known is false if the version of what the store holds does not say it: the server sent
// none, or the program's transform has removed it.
func (r *Reflector[T]) saysMore(event apiwatch.EventType, state identity, version string, held T, exists bool) (more, known bool) {
	deleted := event == apiwatch.Deleted
	if !exists {
		return !deleted && !r.deletions.mayHave(state) && !r.deletions.has(state, event == apiwatch.Added), true
	}
	if a, b := held.GetUID(), state.uid; deleted && a != b && a != "" && b != "" {
		return false, true // another object had the name
	}
	at := held.GetResourceVersion()
	return older(at, version) || deleted && at == version, isNumber(at)
}

// doubts reports whether an event that was not applied may be of a new object, or of one that
// was deleted longer ago than is remembered. The next list says it.
func (r *Reflector[T]) doubts(ev client.WatchEvent[T]) bool {
	if _, exists := r.getter.Get(ev.Object); exists || ev.Type == apiwatch.Deleted || !r.deletions.mayHave(identityOf(ev.Object)) {
		return false
	}
	r.deletions.doubted = &ev.Object
	return true
}

// write gives one event to the store.
func (r *Reflector[T]) write(ev client.WatchEvent[T]) error {
	var err error
	switch ev.Type {
	case apiwatch.Added:
		err = r.store.Add(ev.Object)
	case apiwatch.Modified:
		err = r.store.Update(ev.Object)
	case apiwatch.Deleted:
		err = r.store.Delete(ev.Object)
	default:
		return &client.DecodeError{What: "event", Err: fmt.Errorf("type %q is not known", ev.Type)}
	}
	return r.wrote(ev, err)
}

// wrote notes what the store has been given; err is what it has returned.
func (r *Reflector[T]) wrote(ev client.WatchEvent[T], err error) error {
	if ev.Type == apiwatch.Deleted && r.getter != nil {
		r.deletions.note(ev.Object, r.LastSyncResourceVersion())
	}
	if err != nil {
		return &storeError{fmt.Errorf("store: %s %s/%s: %w", ev.Type, ev.Object.GetNamespace(), ev.Object.GetName(), err)}
	}
	r.counts.event()
	return nil
}

// rewoundError means that the server's resourceVersions went backwards.
type rewoundError struct{ from, to string }

func (e *rewoundError) Error() string {
	return fmt.Sprintf("the server's resourceVersion went back from %s to %s", e.from, e.to)
}
