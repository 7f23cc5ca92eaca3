package inflight

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func user(name string, groups ...string) auth.User { return auth.User{Name: name, Groups: groups} }

// takeAll takes one after the other until it is refused.
func takeAll(l *Limiter, u auth.User) (n int) {
	for l.TryAcquire(u, 1) {
		n++
	}
	return n
}

// TestOneUserCannotHoldAll, nor can several: each that comes later gets something.
func TestOneUserCannotHoldAll(t *testing.T) {
	l := New(800)
	for i, want := range []int{600, 150, 37, 9, 3, 1} {
		if got := takeAll(l, user(fmt.Sprint("greedy-", i))); got != want {
			t.Errorf("user %d got %d of 800, want %d", i, got, want)
		}
	}
	// When the first gives back, the others may take more.
	for range 600 {
		l.Release(user("greedy-0"), 1)
	}
	if got := takeAll(l, user("greedy-1")); got < 100 {
		t.Errorf("after that, the second got %d more", got)
	}
}

// TestAdministratorsAreNotStarved, and do not starve others.
func TestAdministratorsAreNotStarved(t *testing.T) {
	l := New(4)
	for i := range 10 {
		takeAll(l, user(fmt.Sprint("user-", i)))
	}
	admin := user("admin", "dev", auth.Masters)
	if got := takeAll(l, admin); got != 4 {
		t.Errorf("an administrator got %d", got)
	}
	l.Release(user("user-0"), 1)
	if !l.TryAcquire(user("another"), 1) {
		t.Error("administrators have taken what users may have")
	}
}

// TestLimitOfEachUser but administrators, whose share is not less.
func TestLimitOfEachUser(t *testing.T) {
	l := NewPerUser(100, 20)
	for _, want := range []struct {
		user auth.User
		most int
	}{{user("a"), 20}, {user("b"), 20}, {user("c"), 20}, {user("d"), 20}, {user("e"), 15}, {user("admin", auth.Masters), 100}} {
		if got := takeAll(l, want.user); got != want.most {
			t.Errorf("%s got %d, want %d", want.user.Name, got, want.most)
		}
	}
	l.Release(user("a"), 5)
	if got := takeAll(l, user("a")); got > 5 {
		t.Errorf("after it gave 5 back, a got %d", got)
	}
}

func TestTheSmallestLimiter(t *testing.T) {
	l := New(1)
	if !l.TryAcquire(user("a"), 1) || l.TryAcquire(user("a"), 1) || l.TryAcquire(user("b"), 1) {
		t.Error("one is not one")
	}
	l.Release(user("a"), 1)
	if !l.TryAcquire(user("b"), 1) || l.InUse() != 1 {
		t.Error("what was given back is not there")
	}
}

// TestUsersAreForgotten when they hold nothing, if they are many.
func TestUsersAreForgotten(t *testing.T) {
	l := New(1)
	for i := range 3 * maxIdle {
		u := user(fmt.Sprint(i))
		if !l.TryAcquire(u, 1) || l.TryAcquire(user(fmt.Sprint("refused", i)), 1) {
			t.Fatal("one is not one")
		}
		l.Release(u, 1)
	}
	if n := len(l.users.holders); n > maxIdle+1 {
		t.Errorf("%d users are remembered", n)
	}
}
