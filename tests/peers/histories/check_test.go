package histories

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// evidence is all that is known of one client when everything is quiet.
type evidence struct {
	name   string
	view   view
	manner manner

	history storeHistory     // the true history, to its end
	from    uint64           // of which version the client was when the silence began, or before that
	notes   []note           // what it got
	began   int              // how many of the notes came before the silence
	known   map[string]state // what follows from the notes
	holds   map[string]state // its copy
	asked   tally            // since the silence began
	expect  demand
	// ahead: the client may have got a deletion early, from a server that has
	// only coalesced history. It may then have been cut off and have resumed from
	// a server that still has the events before that deletion. Likewise it may not
	// have got what another server takes for known at its version: see shownBefore.
	ahead bool
}

// demand says how a client had to come back.
type demand struct {
	// lists: its history was gone. A client that can is sent the difference,
	// and others list once.
	lists bool
	// differs: it is one that can.
	differs bool
	// free: it may list whenever it likes.
	free bool
}

// check is one thing that is true of every client.
type check struct {
	name     string
	sentence string
	find     func(*evidence) error // what is wrong, nil if nothing is
}

// checks are all of them.
var checks = []check{
	{"equal", "In the end a client holds what the store has, each object in its last version.", equal},
	{"alive", "A client does not get again, and does not hold, an object whose deletion it got or that the store has deleted.", alive},
	{"ordered", "A client gets the events of an object in the order in which they happened, and each follows from the ones before.", ordered},
	{"true", "Everything that a client gets has happened, and matches what it asked for.", truthful},
	{"notified", "A client gets an event for every object that is not as it was before the silence.", notified},
	{"known", "A client gets a deletion only of an object that it knew or could know.", knownEnds},
	{"frugal", "A client lists, or is sent the difference, once when its history is gone, and else never.", frugal},
}

// verify returns what the checks have found, by their names.
func (e *evidence) verify() map[string]error {
	found := map[string]error{}
	for _, c := range checks {
		if err := c.find(e); err != nil {
			found[c.name] = fmt.Errorf("%s: %s: %w", e.name, c.name, err)
		}
	}
	return found
}

func equal(e *evidence) error { return differ("it holds", e.holds, e.history.now(e.view)) }

// differ names one object that differs.
func differ(what string, got, want map[string]state) error {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		w := want[key]
		if g, ok := got[key]; !ok {
			return fmt.Errorf("%s nothing under %s, and the store %v", what, key, w)
		} else if g != w {
			return fmt.Errorf("%s %v %s, and the store %v %s", what, g, g.uid, w, w.uid)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("%s %v, and the store nothing that is asked for", what, got[key])
		}
	}
	return nil
}

func alive(e *evidence) error {
	for _, s := range e.holds {
		if _, at, deleted := e.history.deletion(s.uid); deleted {
			return fmt.Errorf("it holds %v, which ended at %d", s, at)
		}
	}
	ended := map[types.UID]note{}
	end := func(n note) {
		if last, ok := ended[n.uid]; !ok || n.version > last.version {
			ended[n.uid] = n
		}
	}
	show := func(s state) error {
		if last, ok := ended[s.uid]; ok && s.version <= last.version {
			return fmt.Errorf("it got %v after it got the deletion at %d", s, last.version)
		}
		return nil
	}
	known := map[string]state{}
	for _, n := range e.notes {
		switch n.kind {
		case deleted:
			end(n)
			delete(known, n.key)
			continue
		case relisted:
			clear(known)
			for _, s := range n.list {
				if err := show(s); err != nil {
					return err
				}
				known[s.key] = s
			}
			continue
		}
		if before, ok := known[n.key]; ok && !before.sameObject(n.state) {
			end(note{state: before}) // another object under its name
		}
		if err := show(n.state); err != nil {
			return err
		}
		known[n.key] = n.state
	}
	return nil
}

// ordered follows the notes with what the client knew at each.
func ordered(e *evidence) error {
	known, last := map[string]state{}, map[types.UID]uint64{}
	for i, n := range e.notes {
		if n.kind == relisted {
			clear(known)
			for _, s := range n.list {
				if s.version < last[s.uid] {
					return fmt.Errorf("note %d lists %v after version %d of it", i, s, last[s.uid])
				}
				known[s.key], last[s.uid] = s, s.version
			}
			continue
		}
		before, ok := known[n.key]
		if err := e.follows(n, before, ok, last[n.uid]); err != nil {
			return fmt.Errorf("note %d, %s %v: %w", i, n.kind, n.state, err)
		}
		last[n.uid] = n.version
		if n.kind == deleted {
			delete(known, n.key)
		} else {
			known[n.key] = n.state
		}
	}
	return nil
}

// follows says whether a note may come when the client knows before, and has
// seen the version last of the same object.
func (e *evidence) follows(n note, before state, known bool, last uint64) error {
	again := n.kind == updated && !e.manner.wire && n.old.is(n.state) // a list that shows what is known
	switch {
	case n.version < last, n.version == last && n.kind != deleted && !again:
		return fmt.Errorf("it comes after version %d", last)
	case n.kind == added && known && (!e.manner.wire || before.sameObject(n.state)):
		return fmt.Errorf("it is known as %v", before)
	case n.kind == updated && !e.manner.wire && (!known || before != n.old):
		return fmt.Errorf("it starts from %v, and known is %v", n.old, before)
	case n.kind == updated && known && !before.sameObject(n.state) && !e.manner.joins,
		n.kind == added && known && !before.sameObject(n.state),
		n.kind == deleted && known && !before.sameObject(n.state):
		return fmt.Errorf("known under its name is another one, %v", before)
	}
	return nil
}

func truthful(e *evidence) error {
	next := map[types.UID]uint64{} // the version of an object that the client gets after this note
	for i, n := range slices.Backward(e.notes) {
		switch n.kind {
		case relisted:
			for _, s := range n.list {
				if err := e.shown(s); err != nil {
					return fmt.Errorf("note %d lists %v, which %w", i, s, err)
				}
				next[s.uid] = s.version
			}
			continue
		case deleted:
			until, again := next[n.uid]
			if !again || e.ahead {
				until = e.history.until + 1
			}
			if err := e.ended(n, until); err != nil {
				return fmt.Errorf("note %d, deleted %v: %w", i, n.state, err)
			}
			continue
		}
		if err := e.shown(n.state); err != nil {
			return fmt.Errorf("note %d, %s %v, %w", i, n.kind, n.state, err)
		}
		next[n.uid] = n.version
	}
	return nil
}

func (e *evidence) shown(s state) error {
	switch {
	case !e.history.wrote(s):
		return fmt.Errorf("was never written")
	case !e.view.selects(s):
		return fmt.Errorf("is not what was asked for")
	}
	return nil
}

// ended says whether a pod had left the view, or was deleted, at the version of
// the deletion that the client got or later, but before until.
func (e *evidence) ended(n note, until uint64) error {
	if !e.history.wasOutside(n.uid, e.view, n.version, until) {
		return fmt.Errorf("it was there all the time until %d", until)
	}
	for _, c := range e.history.byUID[n.uid] {
		if c.key == n.key && c.content == n.content {
			return nil
		}
	}
	return fmt.Errorf("it was never like that")
}

func notified(e *evidence) error {
	if err := differ("its notes lead to", e.known, e.history.now(e.view)); err != nil {
		return err
	}
	received := map[string]bool{}
	for _, n := range e.notes[e.began:] {
		received[n.key] = true
		if n.kind == relisted {
			return nil // it has looked at everything
		}
	}
	before, after := e.history.at(e.from, e.view), e.history.now(e.view)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if !before[key].is(after[key]) && !received[key] {
			return fmt.Errorf("it got no event for %v", before[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if !before[key].is(after[key]) && !received[key] {
			return fmt.Errorf("it got no event for %v", after[key])
		}
	}
	return nil
}

// knownEnds demands that each end is of what had been shown, or, from clients
// that do not compare with what they hold, of what was there, in the namespace
// that is looked at, at some time before the end that the client may have come
// back from.
func knownEnds(e *evidence) error {
	known := map[string]state{}
	for i, n := range e.notes {
		switch n.kind {
		case relisted:
			clear(known)
			for _, s := range n.list {
				known[s.key] = s
			}
			continue
		case deleted:
			if before, ok := known[n.key]; ok && before.sameObject(n.state) {
				delete(known, n.key)
				continue
			}
			if err := e.unknownDeletion(i, n); err != nil {
				return fmt.Errorf("note %d, deleted %v: %w", i, n.state, err)
			}
			continue
		}
		known[n.key] = n.state
	}
	return nil
}

func (e *evidence) unknownDeletion(i int, n note) error {
	changes := e.history.byUID[n.uid]
	switch {
	case !e.manner.unknownDeletions:
		return fmt.Errorf("it was not known")
	case len(changes) == 0:
		return fmt.Errorf("it has never been there")
	case e.view.labels == "" && e.view.fields == "" && (!e.ahead || e.shownBefore(i, n.uid)):
		return fmt.Errorf("it was not known, and nothing enters or leaves such a view while it lives")
	case e.view.namespace != "" && !e.view.selects(n.state):
		return fmt.Errorf("it is not in the namespace")
	case changes[0].version > n.version:
		return fmt.Errorf("it was not there before %d", changes[0].version)
	}
	return nil
}

// shownBefore reports whether the client got an object in a note before i. If it did not, and
// was cut off within coalesced history, that may have left the object out, since it has
// changed or gone since it was created. The client resumes from the version of an event
// after the creation. A server cannot tell it from one that saw the creation and would
// hold the object for ever without the deletion.
func (e *evidence) shownBefore(i int, uid types.UID) bool {
	return slices.ContainsFunc(e.notes[:i], func(n note) bool {
		return n.kind != deleted && n.kind != relisted && n.uid == uid ||
			n.kind == relisted && slices.ContainsFunc(n.list, func(s state) bool { return s.uid == uid })
	})
}

func frugal(e *evidence) error {
	got, want := e.asked.lists, 0
	if e.expect.lists {
		want = 1
	}
	if e.expect.differs { // unless the server finds that a list is the shorter answer
		got += e.asked.differences
	}
	if got != want && !e.expect.free {
		return fmt.Errorf("%d lists and %d differences, and %d was due", e.asked.lists, e.asked.differences, want)
	}
	return nil
}
