package watchcache

import "github.com/levelwire/levelwire/storage"

// summaryFrom returns the revision after which a summary must begin for the watcher: where it is,
// or the revision before if it may have only a part of that. The lock is held.
func (w *Watcher) summaryFrom() storage.Revision {
	c, from := w.cache, max(w.reached, w.after) // the latter until the initial snapshot has been read
	switch {
	case !c.oneByOne.Load():
		from = c.shared.ResumeAfter(from)
	case from > c.replacedAt: // the log, which would say more, has lost it
		from--
	}
	return max(from, w.hasVersion()-1)
}

// hasVersion returns the version that the client has, or has when it has read the initial snapshot. It has all
// that is before it.
func (w *Watcher) hasVersion() storage.Revision {
	if w.initial != nil {
		return w.initial.Revision()
	}
	return w.handed
}

// beginSummary makes the watcher read a summary, of the changes after a revision, before it goes on
// in the log.
func (w *Watcher) beginSummary(s *summary, since storage.Revision) {
	w.since = since
	w.hasPart = w.hasVersion() > w.since
	w.summary, w.cursor = s, s.after(w.since)
	w.sweeping = w.selection.MembershipChanges()
	w.after, w.coalescedThrough = s.revision, s.revision
}

// resumeFromSummary makes a watcher whose next event has been evicted go on with
// coalesced history. It returns false if there is none, or the watcher is in a gap.
func (w *Watcher) resumeFromSummary() bool {
	c := w.cache
	c.mu.Lock()
	from := w.summaryFrom()
	c.mu.Unlock()
	for range summaryAttempts {
		s := c.summarizeUnlessExact(from)
		if s == nil {
			return false
		}
		c.mu.Lock()
		if s.generation != c.generation.Load() || s.position < c.log.Oldest() {
			c.mu.Unlock()
			continue
		}
		if w.inGap() { // from where the summary ends, it would not be found any more
			c.mu.Unlock()
			return false
		}
		w.beginSummary(s, from)
		c.seek(w, s.position)
		c.mu.Unlock()
		c.counters.continued.Add(1)
		return true
	}
	return false
}

// readSummary delivers the next events of coalesced history: what has changed
// since the revision that the client has.
//
// In the main part each selected object that has changed comes once, as it is now,
// and each object that was deleted while it was selected, all in the order of
// their revisions. The event is Added if the object was created since.
//
// A selection by labels or fields needs another part before it. An object that
// is not selected now may have been selected at the client's revision, and then
// comes as Deleted, unless its labels and fields have been the same since, or it
// was created since. These events carry the revision that the client has already.
// If they came at their own revisions, a client whose watch breaks before one of
// them, and which then resumes with exact history, would never get it: in exact
// history the object merely goes from one state that is not selected to another.
// With these events first, a client has got before every event that exact history
// would not send later, so it can resume from any event, on any server.
//
// A client that resumes from within coalesced history may get the deletion of an object
// that it never got: the object was created before the event from which it resumes, and
// left out, or to come later, because it has changed or gone since. That is not to be told
// from a client that got every event and knows the object, which needs the deletion.
func (w *Watcher) readSummary(buf []Event) int {
	n := 0
	for changes := w.summary.changes; n < len(buf); w.cursor++ {
		if w.cursor == len(changes) {
			if w.sweeping {
				w.sweeping, w.cursor = false, w.summary.after(w.since)-1
				continue
			}
			w.reached = max(w.reached, w.summary.revision)
			w.summary = nil
			return n
		}
		change := &changes[w.cursor]
		kind := w.eventTypeOf(change)
		switch {
		case kind == 0:
			continue
		case w.sweeping:
			at := w.clientVersion()
			buf[n] = Event{Type: Deleted, Object: change.state().AtRevision(at), Revision: at}
		case kind == Deleted:
			buf[n] = Event{Type: Deleted, Object: change.deletion.LastState(w.cache.formBytes.Load()), Revision: change.deletion.Through}
		default:
			buf[n] = Event{Type: kind, Object: change.object, Revision: change.revision}
		}
		w.hand(&buf[n])
		if !w.sweeping {
			w.reached = max(w.reached, w.completeThrough(w.cursor))
		}
		n++
	}
	return n
}

// completeThrough returns the revision up to which the client has got everything
// with the change at a cursor.
func (w *Watcher) completeThrough(cursor int) storage.Revision {
	changes := w.summary.changes
	revision := changes[cursor].revision
	if cursor+1 < len(changes) && changes[cursor+1].revision == revision {
		return revision - 1
	}
	return revision
}

// clientVersion returns the version that the client had before coalesced history: since, or the one
// after it, if the client has an event of that and may lack others.
func (w *Watcher) clientVersion() storage.Revision {
	if w.hasPart {
		return w.since + 1
	}
	return w.since
}

// eventTypeOf returns the type of the event that the watcher gets of a change in
// the part of the summary that it reads; 0 if it gets none.
func (w *Watcher) eventTypeOf(l *latestChange) EventType {
	o := l.state()
	unknown := o.CreatedRevision > w.clientVersion() // to the client
	switch matches := w.selection.Matches(o); {
	case w.sweeping && (matches || unknown || !w.selection.MayHaveMatched(o, max(w.since, o.CreatedRevision))):
		return 0
	case w.sweeping:
		return Deleted
	case !matches, unknown && l.object == nil:
		return 0
	case l.object == nil:
		return Deleted
	case o.CreatedRevision > w.since:
		return Added
	}
	return Modified
}

// reachedInSummary is Reached while a summary is read.
func (w *Watcher) reachedInSummary() storage.Revision {
	if w.sweeping {
		return w.reached
	}
	changes := w.summary.changes
	for ; w.cursor < len(changes); w.cursor++ {
		if w.eventTypeOf(&changes[w.cursor]) != 0 {
			w.reached = max(w.reached, changes[w.cursor].revision-1)
			return w.reached
		}
	}
	w.reached = max(w.reached, w.summary.revision)
	return w.reached
}
