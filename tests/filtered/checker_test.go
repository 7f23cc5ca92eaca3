package filtered

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// checker compares what a client got with the model. It is used between the rounds.
type checker struct {
	client *client
	model  *model
	exact  bool // the server has each change: each must come once
	shared bool // other servers write, too
	late   func(time.Time) time.Duration
	fail   func(format string, args ...any)

	holds   map[string]int64
	pages   map[string]int64 // of a list that goes on
	partial bool             // the initial events have not ended
	opened  time.Time        // when the watch was asked for
	sent    int64            // the latest revision that the watch has sent

	// What the watch has to send begins after from; next counts what of it has come.
	follows bool
	from    int64
	next    int
	pending []expected

	log                                                  []string // the latest items
	events, bookmarks, lists, watches, withheld, nameful int
}

// replay takes what has come.
func (k *checker) replay(items []item) {
	if k.follows {
		k.pending = k.model.events(&k.client.selection, k.from)
	}
	for i := range items {
		switch i := &items[i]; i.what {
		case opened:
			k.open(i)
		case changedObject:
			k.change(i)
		case bookmark:
			k.bookmark(i)
		case page:
			k.page(i)
		}
	}
}

func (k *checker) logf(format string, args ...any) {
	if k.log = append(k.log, fmt.Sprintf(format, args...)); len(k.log) > 200 {
		k.log = k.log[100:]
	}
}

func (k *checker) failf(format string, args ...any) {
	k.fail("%s: %s\n%s", k.client.name, fmt.Sprintf(format, args...), strings.Join(k.log, "\n"))
}

// open begins a watch.
func (k *checker) open(i *item) {
	k.watches++
	k.logf("watch from %d, rewound %t", i.revision, i.rewound)
	k.opened, k.sent, k.follows = i.at, 0, false
	switch {
	case i.revision == 0:
		k.holds, k.partial = map[string]int64{}, true
		return
	case i.rewound:
		k.holds = k.model.view(&k.client.selection, i.revision)
	}
	k.partial = false
	k.follow(i.revision)
}

// follow expects every change after a revision.
func (k *checker) follow(from int64) {
	if k.exact {
		k.follows, k.from, k.next = true, from, 0
		k.pending = k.model.events(&k.client.selection, from)
	}
}

// span returns the revisions that the server may have known when it sent something that has
// come at a time, on an answer that was asked for at another.
func (k *checker) span(asked, came time.Time) (from, to int64) {
	from = max(k.model.acknowledged(asked), k.model.acknowledged(came.Add(-*grace-k.late(came))))
	return from, max(from, k.model.begun(came))
}

// visible reports whether the user could see a namespace at some revision between two.
func (k *checker) visible(from, to int64, namespace string) bool {
	return sees(k.model.visible[k.client.reader], from, max(from, to), namespace)
}

// content checks what was sent of an object that exists: it was as it is said, and could be
// seen at some revision from the one after which it was sent on.
func (k *checker) content(key string, g got, from, to int64) {
	s := k.model.stateAt(k.client.kind, key, g.revision)
	if s == nil || s.revision != g.revision || s.value != g.value || !k.client.matches(s) {
		k.failf("%s@%d with value %q never was, or is not selected: %v", key, g.revision, g.value, s)
		return
	}
	if !k.visible(max(from, g.revision), to, namespaceOf(key)) {
		k.failf("LEAK: %s@%d is not visible from %d to %d", key, g.revision, max(from, g.revision), to)
	}
}

// permitted checks that the client could impersonate its user when something was sent, as far as
// the server had to know: of its own writes at once, of other servers' soon.
func (k *checker) permitted(asked, came time.Time, to int64) {
	from := k.model.acknowledged(came.Add(-*grace - k.late(came)))
	if !k.shared {
		from = max(from, k.model.acknowledged(asked))
	}
	to = max(from, to)
	if !sees(k.model.may[k.client.identity], from, to, namespaces[0]) {
		k.failf("LEAK: %s could not be %s from %d to %d", k.client.identity.user, k.client.identity.as, from, to)
	}
}

func (k *checker) change(i *item) {
	k.events++
	e := i.changed
	k.logf("%s %s@%d %q", e.kind, e.key, e.revision, i.value)
	from, to := k.span(k.opened, i.at)
	k.permitted(k.opened, i.at, to)
	if e.kind == "DELETED" {
		delete(k.holds, e.key)
		k.deleted(i, to)
	} else {
		k.content(e.key, got{e.revision, i.value}, max(from, k.sent), to)
		k.holds[e.key] = e.revision
	}
	k.sent = max(k.sent, e.revision)
	if !k.follows {
		return
	}
	for ; k.next < len(k.pending); k.next++ {
		if k.pending[k.next].event == e {
			k.next++
			return
		}
		if !k.withholds(k.next, to) {
			break
		}
	}
	k.failf("%v is not what comes next: %v", e, k.pending[k.next:min(len(k.pending), k.next+5)])
	k.follows = false
}

// deleted checks what a deletion shows of the object's last state: only what the watch could
// have sent before.
func (k *checker) deleted(i *item, to int64) {
	if i.value == "" {
		k.nameful++
		return
	}
	for _, s := range k.model.objects[k.client.kind][i.changed.key] {
		if s.value == i.value {
			if from := max(s.revision, k.model.acknowledged(k.opened)); !k.visible(from, to, namespaceOf(i.changed.key)) {
				k.failf("LEAK: the deletion of %s shows the state at %d, which is not visible from %d to %d", i.changed.key, s.revision, from, to)
			}
			return
		}
	}
	k.failf("the deletion of %s shows %q, which never was", i.changed.key, i.value)
}

// withholds reports whether an expected event need not be sent, because the right to its
// content was withdrawn before a revision.
func (k *checker) withholds(n int, to int64) bool {
	e := k.pending[n]
	if e.kind == "DELETED" {
		return false
	}
	namespace := namespaceOf(e.key)
	sets := k.model.visible[k.client.reader]
	for i := range sets {
		if sets[i].revision > e.change && sets[i].revision <= to && !sets[i].set.has(namespace) {
			k.withheld++
			return true
		}
	}
	return false
}

func (k *checker) bookmark(i *item) {
	k.bookmarks++
	k.logf("BOOKMARK %d, end %t", i.revision, i.end)
	k.sent = max(k.sent, i.revision)
	_, to := k.span(k.opened, i.at)
	k.permitted(k.opened, i.at, to)
	if k.partial && !i.end {
		return
	}
	if k.partial {
		k.partial = false
		k.follow(i.revision)
	}
	for k.follows && k.next < len(k.pending) && k.pending[k.next].change <= i.revision {
		if !k.withholds(k.next, to) {
			k.failf("LOSS: at the bookmark %d, %v is missing", i.revision, k.pending[k.next])
			k.follows = false
		}
		k.next++
	}
	k.compare("a bookmark", i.revision, k.holds)
}

func (k *checker) compare(what string, revision int64, holds map[string]int64) {
	if want := k.model.view(&k.client.selection, revision); !maps.Equal(holds, want) {
		k.failf("%s at %d: the client holds %v, and visible is %v", what, revision, sorted(holds), sorted(want))
	}
}

func (k *checker) page(i *item) {
	k.logf("list at %d, %d objects, end %t", i.revision, len(i.objects), i.end)
	acknowledged, to := k.model.acknowledged(i.begun), max(k.model.begun(i.at), i.revision)
	if i.latest && i.revision < acknowledged {
		k.failf("a list at %d, which was begun after %d", i.revision, acknowledged)
	}
	k.permitted(i.begun, i.begun, to)
	for key, g := range i.objects {
		k.content(key, g, acknowledged, to)
	}
	if i.first {
		k.pages = map[string]int64{}
	}
	for key, g := range i.objects {
		k.pages[key] = g.revision
	}
	if !i.end {
		return
	}
	k.lists++
	k.compare("a list", i.revision, k.pages)
	if !i.aside {
		k.holds, k.partial, k.follows = k.pages, false, false
	}
	k.pages = nil
}
