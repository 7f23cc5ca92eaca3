package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var key = Key{Namespace: "ns", Name: "owner"}

func TestExpectationsSettleWhenEverythingWasSeen(t *testing.T) {
	e := NewExpectations()
	e.ExpectCreated(key, "a", "1")
	e.ExpectDeleted(key, "2")
	if e.Settled(key) {
		t.Fatal("settled with two pending")
	}
	if !e.Settled(Key{Name: "another"}) {
		t.Fatal("another owner waits too")
	}
	e.Created("1")
	if e.Settled(key) {
		t.Fatal("settled with a deletion pending")
	}
	e.Observed("2")
	if !e.Settled(key) {
		t.Fatal("not settled")
	}
}

func TestWatchFasterThanTheAnswer(t *testing.T) {
	e := NewExpectations()
	e.Created("1") // shown by the watch before the create call returned
	e.ExpectCreated(key, "a", "1")
	if !e.Settled(key) {
		t.Fatal("waits for what was shown")
	}
}

// The watch may show that an object was created, and that it was deleted, before the calls
// return that did so.
func TestObservedBeforeItWasExpected(t *testing.T) {
	for name, test := range map[string]struct {
		do      func(e *Expectations)
		settled bool
	}{
		"created and deleted": {func(e *Expectations) { e.Created("1"); e.Observed("1"); e.ExpectCreated(key, "a", "1") }, true},
		"only its deletion":   {func(e *Expectations) { e.Observed("1"); e.ExpectCreated(key, "a", "1") }, true},
		"deleted and then created, by a list that was late": {func(e *Expectations) { e.Observed("1"); e.Created("1"); e.ExpectCreated(key, "a", "1") }, true},
		"marked for deletion, and then deleted": {func(e *Expectations) {
			e.Created("1")
			e.Observed("1")
			e.Observed("1")
			e.ExpectCreated(key, "a", "1")
		}, true},
		"deleted by another client before this one does": {func(e *Expectations) { e.Observed("1"); e.ExpectDeleted(key, "1") }, true},
		"created, deleted, and both expected afterwards": {func(e *Expectations) {
			e.Created("1")
			e.Observed("1")
			e.ExpectCreated(key, "a", "1")
			e.ExpectDeleted(key, "1")
		}, true},
		"created early, and its deletion is under way": {func(e *Expectations) { e.Created("1"); e.ExpectCreated(key, "a", "1"); e.ExpectDeleted(key, "1") }, false},
		"created and deleted, and the deletion expected afterwards": {func(e *Expectations) {
			e.ExpectCreated(key, "a", "1")
			e.Observed("1") // the informer had not delivered the creation
			e.ExpectDeleted(key, "1")
		}, true},
		"the creation, after its deletion is under way": {func(e *Expectations) {
			e.ExpectCreated(key, "a", "1")
			e.ExpectDeleted(key, "1")
			e.Created("1")
		}, false},
		"the creation and then the deletion that is under way": {func(e *Expectations) {
			e.ExpectCreated(key, "a", "1")
			e.ExpectDeleted(key, "1")
			e.Created("1")
			e.Observed("1")
		}, true},
		"another object":         {func(e *Expectations) { e.Created("2"); e.Observed("2"); e.ExpectCreated(key, "a", "1") }, false},
		"a deletion that failed": {func(e *Expectations) { e.ExpectDeleted(key, "1"); e.Observed("1"); e.ExpectDeleted(key, "1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewExpectations()
			test.do(e)
			if e.Settled(key) != test.settled {
				t.Errorf("settled %v", !test.settled)
			}
		})
	}
}

func TestForgottenOwnerStartsAnew(t *testing.T) {
	e := NewExpectations()
	e.ExpectCreated(key, "a", "1")
	e.Forget(key)
	if !e.Settled(key) || len(e.owners) != 0 {
		t.Fatal("the end of an owner leaves something behind")
	}
}

// What was observed before it was expected is remembered for as long as a call may take,
// whatever other clients do meanwhile, and not for longer.
func TestEarlyObjectsAreBounded(t *testing.T) {
	for name, observe := range map[string]func(e *Expectations, uid types.UID){
		"creations":               (*Expectations).Created,
		"deletions":               (*Expectations).Observed,
		"creations and deletions": func(e *Expectations, uid types.UID) { e.Created(uid); e.Observed(uid) },
		"expected deletions":      func(e *Expectations, uid types.UID) { e.ExpectDeleted(key, uid); e.Observed(uid); e.Observed(uid) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := NewExpectations()
				others := 0
				flood := func(n int) {
					for range n {
						others++
						observe(e, types.UID(fmt.Sprint("other", others)))
					}
				}
				settled := func(uid types.UID) bool {
					e.ExpectCreated(key, "a", uid)
					defer e.Forget(key)
					return e.Settled(key)
				}
				flood(10 * earlyMost)
				if len(e.early) > earlyMost || len(e.earlyOrder) > earlyMost {
					t.Fatalf("keeps %d objects and %d observations of others", len(e.early), len(e.earlyOrder))
				}
				time.Sleep(earlyFor / 2)
				e.Created("made")
				e.Created("made and deleted")
				e.Observed("made and deleted")
				e.Observed("deleted")
				flood(earlyMost / 2 * 9 / 10)
				time.Sleep(earlyFor / 2)
				for _, uid := range []types.UID{"made", "made and deleted", "deleted"} {
					if !settled(uid) {
						t.Errorf("waits for the object that was %s half a minute ago", uid)
					}
				}
				time.Sleep(earlyFor)
				if e.Settled(key); len(e.early) > 0 || len(e.earlyOrder) > 0 {
					t.Errorf("keeps %d objects and %d observations of more than a minute ago", len(e.early), len(e.earlyOrder))
				}
				if settled("deleted") {
					t.Error("an object is taken for one of long ago")
				}
			})
		})
	}
}

// TestMissedCreation is about an object that was created and deleted again
// while the watch was cut: nothing will ever show it.
func TestMissedCreation(t *testing.T) {
	for _, c := range []struct {
		name    string
		found   types.UID
		err     error
		settled bool
	}{
		{"gone", "", nil, true},
		{"another has the name", "9", nil, true},
		{"there, and the informer is late", "1", nil, false},
		{"the server does not answer", "", errors.New("cut"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := NewExpectations()
				asked := 0
				ask := func(context.Context, string) (types.UID, error) { asked++; return c.found, c.err }
				e.ExpectCreated(key, "a", "1")
				if settled, again := e.Ask(t.Context(), key, ask); settled || again <= 0 || asked != 0 {
					t.Fatalf("at once: settled %v, again in %s, asked %d times", settled, again, asked)
				}
				time.Sleep(askAfter + time.Millisecond)
				if settled, _ := e.Ask(t.Context(), key, ask); settled != c.settled || asked != 1 {
					t.Fatalf("later: settled %v, asked %d times", settled, asked)
				}
				time.Sleep(expectationTimeout)
				if settled, _ := e.Ask(t.Context(), key, ask); !settled {
					t.Fatal("waits for ever")
				}
			})
		})
	}
}
