package listen

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestOneUserCannotHoldAllConnections: other users, administrators and clients that have yet
// to say who they are find some, and what is closed is given back.
func TestOneUserCannotHoldAllConnections(t *testing.T) {
	l := listenLimited(t, 10)
	var servers []net.Conn
	for range 6 { // three quarters of the eight that users may hold
		_, server, _ := l.hold(user("greedy"))
		servers = append(servers, server)
	}
	refused, why := l.refused(user("greedy"))
	for _, want := range []string{`the user "greedy": 6 of the 10 that`, "--max-connections", "HTTP/2"} {
		if !strings.Contains(why, want) {
			t.Errorf("the error lacks %q: %s", want, why)
		}
	}
	if err := refused.Hold(user("greedy"), false); err == nil || l.limit.Throttled() != 1 {
		t.Errorf("a second request on a refused connection: %v, %d are counted", err, l.limit.Throttled())
	}
	for range 20 { // held without a user: each takes the place of another, refused ones first
		l.open()
	}
	l.hold(user("another"))
	l.hold(user("third"))
	l.holdAs(admin, true)
	l.refused(user("greedy"))
	if l.limit.InUse() != 9 || l.limit.Capacity() != 9 || l.limit.Open() != 10 || l.limit.Throttled() != 2 || l.limit.Refused() != 0 {
		t.Errorf("%d of %d are held, %d open, %d throttled, %d refused", l.limit.InUse(), l.limit.Capacity(), l.limit.Open(), l.limit.Throttled(), l.limit.Refused())
	}
	for _, server := range servers {
		server.Close()
	}
	if l.limit.InUse() != 3 || len(l.limit.holders) != 3 {
		t.Errorf("%d are held by %d users after greedy's were closed", l.limit.InUse(), len(l.limit.holders))
	}
	l.hold(user("greedy"))
}

// admit opens a connection of a limit without a network.
func admit(t *testing.T, l *ConnectionLimit) *Conn {
	t.Helper()
	client, server := net.Pipe()
	c := l.admit(server)
	if c == nil {
		t.Fatal("there is no room")
	}
	t.Cleanup(func() { client.Close(); c.Close() })
	return c
}

// holdAll has a user hold all that it may of a limit, without a network, and returns how many
// that is.
func holdAll(t *testing.T, l *ConnectionLimit, by Holder, system bool) (n int) {
	t.Helper()
	for {
		c := admit(t, l)
		if c.Hold(by, system) != nil {
			c.Close()
			return n
		}
		n++
	}
}

// TestManyNamesCannotHoldAllConnections: some of a few names are left to the next, and some
// to the system's users, who leave some to each other.
func TestManyNamesCannotHoldAllConnections(t *testing.T) {
	l := NewConnectionLimit(1024, 0, discarded)
	if n := holdAll(t, l, user("first"), false); n != 672 {
		t.Errorf("one user holds %d", n)
	}
	for i := range 20 {
		if n := holdAll(t, l, user(fmt.Sprint("name", i)), false); n != 8 {
			t.Errorf("name %d holds %d", i, n)
		}
	}
	for i := range 1000 { // far more than one user can make
		holdAll(t, l, user(fmt.Sprint("more", i)), false)
	}
	if n := l.InUse(); n != 896 {
		t.Errorf("all users hold %d", n)
	}
	for i := range 5 {
		if n := holdAll(t, l, user(fmt.Sprint("node", i)), true); n != 9 {
			t.Errorf("node %d holds %d", i, n)
		}
	}
	if n := holdAll(t, NewConnectionLimit(1024, 0, discarded), admin, true); n != 720 {
		t.Errorf("one administrator holds %d", n)
	}
}

// TestConnectionsPerUser: with a limit for each user, it holds for all but proxies and the
// system's users; an idle connection is given up for another of the same user only.
func TestConnectionsPerUser(t *testing.T) {
	for _, most := range []int{0, 100} {
		l := listenPerUser(t, most, 2)
		for _, by := range []Holder{user("a"), {Namespace, "b", "c"}} {
			_, _, first := l.hold(by)
			l.hold(by)
			if _, why := l.refused(by); !strings.Contains(why, by.String()+": 2 are in use, as many as one user may have (--max-connections-per-user)") {
				t.Error(why)
			}
			first.Idle(time.Now())
			l.hold(by)
			if first.Held() || l.limit.count(by) != 2 {
				t.Errorf("held %v, %d of the user", first.Held(), l.limit.count(by))
			}
		}
		for range 5 {
			l.holdAs(admin, true)
			l.hold(Holder{Kind: Proxy, Name: "a"})
		}
	}
}

// ofAccount returns a service account of the namespace "team".
func ofAccount(name string) Holder { return Holder{Namespace, "team", name} }

// TestOneAccountCannotHoldItsNamespacesConnections: others of its namespace find some, and
// many accounts have no more than one user.
func TestOneAccountCannotHoldItsNamespacesConnections(t *testing.T) {
	l := NewConnectionLimit(1024, 0, discarded)
	if n := holdAll(t, l, ofAccount("greedy"), false); n != 504 {
		t.Errorf("one account holds %d", n)
	}
	for i := range 27 {
		if n := holdAll(t, l, ofAccount(fmt.Sprint("other", i)), false); n != 6 {
			t.Errorf("account %d holds %d", i, n)
		}
	}
	for i := range 1000 { // of which the first finds the last six
		holdAll(t, l, ofAccount(fmt.Sprint("made", i)), false)
	}
	if n := l.InUse(); n != 672 || l.count(ofAccount("greedy")) != 672 {
		t.Errorf("all accounts hold %d", n)
	}
	if n := holdAll(t, l, user("another"), false); n != 8 {
		t.Errorf("another user holds %d", n)
	}
}

// TestAccountsThatHoldNothingTakeNoMemory, however many there have been.
func TestAccountsThatHoldNothingTakeNoMemory(t *testing.T) {
	l := listenLimited(t, 100)
	_, _, first := l.hold(ofAccount("first"))
	h := l.limit.holders[ofAccount("first").whole()]
	for i := range 20 {
		_, server, _ := l.hold(ofAccount(fmt.Sprint("made", i)))
		server.Close()
	}
	if len(h.accounts) != 1 || h.countOf("first") != 1 {
		t.Errorf("%d accounts are counted", len(h.accounts))
	}
	if first.Close(); len(h.accounts) != 0 || len(l.limit.holders) != 0 {
		t.Errorf("%d accounts, %d holders are counted after the last was closed", len(h.accounts), len(l.limit.holders))
	}
}

// TestAccountsGiveUpIdleConnections: one that holds what it may gives up its own, and takes
// none of an account that holds less, nor of another user; one that has none gets any.
func TestAccountsGiveUpIdleConnections(t *testing.T) {
	l := listenPerUser(t, 0, 8)
	_, _, small := l.hold(ofAccount("small"))
	_, _, other := l.hold(user("other"))
	small.Idle(time.Now().Add(-time.Hour))
	other.Idle(time.Now().Add(-time.Hour))
	var own []*Conn
	for range 5 {
		_, _, c := l.hold(ofAccount("most"))
		own = append(own, c)
	}
	_, why := l.refused(ofAccount("most"))
	if want := `the service account "team/most": 5 of the 8 that its namespace may have`; !strings.Contains(why, want) || !small.Held() || !other.Held() {
		t.Errorf("held: %v, %v; %s", small.Held(), other.Held(), why)
	}
	own[2].Idle(time.Now())
	l.hold(ofAccount("most"))
	if own[2].Held() || !small.Held() || !other.Held() {
		t.Errorf("held: %v, those of others %v, %v", own[2].Held(), small.Held(), other.Held())
	}
	l.hold(ofAccount("second"))
	l.hold(ofAccount("third"))
	l.hold(ofAccount("fourth"))
	if small.Held() || l.limit.count(ofAccount("")) != 8 {
		t.Errorf("an account that has none gets nothing although a connection is idle; %d are held", l.limit.count(ofAccount("")))
	}
}

// TestOwnIdleConnectionsAreGivenUpFirst, so that a client that connects again does not wait
// until the server sees that its former connection is dead, and no other user pays for it.
func TestOwnIdleConnectionsAreGivenUpFirst(t *testing.T) {
	l := listenLimited(t, 10)
	var own []*Conn
	for range 6 {
		_, _, c := l.hold(user("most"))
		own = append(own, c)
	}
	own[3].Idle(time.Now().Add(-time.Minute))
	own[4].Idle(time.Now())
	_, _, small := l.hold(user("small"))
	small.Idle(time.Now().Add(-time.Hour))
	l.hold(user("most"))
	if own[3].Held() || !own[4].Held() || !small.Held() {
		t.Errorf("held: %v, %v, that of another %v", own[3].Held(), own[4].Held(), small.Held())
	}
	l.hold(user("most"))
	l.refused(user("most")) // small holds fewer
	if !small.Held() {
		t.Error("a user with one connection has lost it to one with more")
	}
}

// TestIdleConnectionsAreGivenUp: when users hold all that they may, one with fewer gets that
// of the user with most which has been idle for longest; one with none gets any.
func TestIdleConnectionsAreGivenUp(t *testing.T) {
	l := listenLimited(t, 10)
	now := time.Now()
	_, _, inUse := l.hold(user("most"))
	_, _, later := l.hold(user("most"))
	longestClient, _, longest := l.hold(user("most"))
	_, _, used := l.hold(user("most"))
	_, _, single := l.hold(user("single0"))
	for i := range 3 {
		l.hold(user(fmt.Sprint("single", i+1)))
	}
	single.Idle(now.Add(-time.Hour))
	later.Idle(now.Add(-time.Second))
	longest.Idle(now.Add(-time.Minute))
	used.Idle(now.Add(-time.Hour))
	used.Busy()

	l.hold(user("newcomer"))
	l.closed(longestClient)
	if longest.Held() || l.limit.YieldedTotal() != 1 || l.limit.InUse() != 8 {
		t.Errorf("held %v; %d were given up, %d are held", longest.Held(), l.limit.YieldedTotal(), l.limit.InUse())
	}
	l.hold(user("newcomer")) // "most" has as many then
	if later.Held() {
		t.Error("the other idle one is kept")
	}
	l.refused(user("newcomer"))
	l.hold(user("third"))
	if single.Held() {
		t.Error("a user that has none gets nothing although a connection is idle")
	}
	_, why := l.refused(user("fourth"))
	if !strings.Contains(why, "all of the 10 connections") || !inUse.Held() || !used.Held() {
		t.Errorf("a connection with a request was taken: %v, %v; %s", inUse.Held(), used.Held(), why)
	}
	l.holdAs(admin, true)
}

// TestConnectionsOfTheSystem are given up for each other, and for no other user: or those who
// come one by one would end up with all that is kept for the system.
func TestConnectionsOfTheSystem(t *testing.T) {
	l := listenLimited(t, 20) // 18 for users, one more for the system
	for range 8 {
		_, _, c := l.holdAs(admin, true)
		c.Idle(time.Now())
	}
	for i := range 10 {
		l.hold(user(fmt.Sprint("user", i)))
	}
	l.refused(user("newcomer"))
	l.holdAs(user("node"), true)
	l.holdAs(user("scheduler"), true)
	l.holdAs(admin, true)
	if n := l.limit.count(admin); n != 7 || l.limit.InUse() != 19 {
		t.Errorf("the administrator holds %d, all %d", n, l.limit.InUse())
	}
}

// TestRequestsOnGivenUpConnections are not cut: those that come over HTTP/2 before the client
// knows, however many connections are opened meanwhile.
func TestRequestsOnGivenUpConnections(t *testing.T) {
	l := listenLimited(t, 10)
	var given []*Conn
	asked := 0
	for range 6 {
		_, _, c := l.hold(user("most"))
		c.OnYield(func() { asked++ })
		c.Idle(time.Now())
		given = append(given, c)
	}
	for range 2 {
		l.hold(user("most"))
	}
	if asked != 2 || given[0].Held() || given[1].Held() {
		t.Fatalf("%d were asked to go, held: %v, %v", asked, given[0].Held(), given[1].Held())
	}
	given[0].Busy() // its request is being authenticated
	for range 100 {
		l.open()
	}
	if given[0].closed || !given[1].closed {
		t.Errorf("closed: with a request %v, without one %v", given[0].closed, given[1].closed)
	}
	if err := given[0].Hold(user("most"), false); err != nil || !given[0].Held() || given[2].Held() || l.limit.count(user("most")) != 6 {
		t.Errorf("it asks again: %v; held %v", err, given[0].Held())
	}
}

// TestGivenUpConnectionsAreNotKept by requests of clients that are not known, and by those of
// users that may have no more.
func TestGivenUpConnectionsAreNotKept(t *testing.T) {
	for name, request := range map[string]func(c *Conn){
		"anonymous": func(c *Conn) { c.Used() },
		"refused": func(c *Conn) {
			if c.Hold(user("most"), false) == nil {
				t.Error("it is held")
			}
		},
	} {
		l := listenLimited(t, 10)
		var given *Conn
		for range 7 {
			_, _, c := l.hold(user("most"))
			c.OnYield(func() {})
			if given == nil {
				c.Idle(time.Now())
				given = c
			}
		}
		given.Busy()
		request(given)
		for range 10 {
			l.open()
		}
		if !given.closed {
			t.Errorf("a request, %s, keeps a connection that no user holds", name)
		}
	}
}

// TestGivenUpConnectionsKeepNobodyOut: when a request is on each connection that no user
// holds, one of them makes room nevertheless.
func TestGivenUpConnectionsKeepNobodyOut(t *testing.T) {
	l := NewConnectionLimit(10, 0, discarded)
	open := func() *Conn { return admit(t, l) }
	var given []*Conn
	for range 10 { // of which the user can hold six
		c := open()
		if err := c.Hold(user("most"), false); err != nil {
			t.Fatal(err)
		}
		c.OnYield(func() { given = append(given, c) })
		c.Idle(time.Now())
	}
	if len(given) != 4 {
		t.Fatalf("%d were given up", len(given))
	}
	for _, c := range given {
		c.Busy() // its answer is not read
	}
	for range 20 {
		open()
	}
	if n := l.Refused(); n != 0 || !given[0].closed || l.InUse() != 6 {
		t.Errorf("%d were refused, the first is closed: %v, %d are held", n, given[0].closed, l.InUse())
	}
}

// TestARequestWinsOverClaiming: a connection on which a request arrives while it is chosen is
// kept.
func TestARequestWinsOverClaiming(t *testing.T) {
	l := listenLimited(t, 10)
	_, _, c := l.hold(user("a"))
	c.Busy()
	if l.limit.mu.Lock(); c.claim() || !c.Held() {
		t.Error("a connection with a request was claimed")
	}
	l.limit.mu.Unlock()
	c.Idle(time.Now())
	if l.limit.mu.Lock(); !c.claim() || c.Held() {
		t.Error("an idle connection was not claimed")
	}
	l.limit.mu.Unlock()
}

// TestIdleConnectionsAreFoundAmongMany, although one search looks at few: of its own a user
// finds the only one in the end, and of many of another user it finds one at once.
func TestIdleConnectionsAreFoundAmongMany(t *testing.T) {
	l := NewConnectionLimit(1024, 0, discarded)
	n := holdAll(t, l, user("most"), false)
	only := l.holders[user("most")].conns.Back().Value.(*Conn) // a first search has looked at others
	only.Idle(time.Now())
	searches := 0
	for ; only.Held() && searches < n; searches++ {
		holdAll(t, l, user("most"), false)
	}
	if least := n/maxExamined - 1; searches < least || searches > least+2 {
		t.Errorf("the only idle one of %d was found by search %d", n, searches)
	}

	for i := range 224 / 8 {
		holdAll(t, l, user(fmt.Sprint("few", i)), false)
	}
	if l.InUse() != l.Capacity()-64 {
		t.Fatalf("%d are held", l.InUse())
	}
	refused, given := l.Throttled(), l.YieldedTotal()
	i := 0
	for e := l.holders[user("most")].conns.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Conn); i%2 == 0 {
			c.Idle(time.Now())
		}
		i++
	}
	for i := range 30 {
		if err := admit(t, l).Hold(user(fmt.Sprint("newcomer", i)), false); err != nil {
			t.Error(err)
		}
	}
	if l.Throttled() != refused || l.YieldedTotal() != given+30 || l.count(user("most")) != n-30 {
		t.Errorf("%d were refused, %d given up, the user with most holds %d of %d", l.Throttled()-refused, l.YieldedTotal()-given, l.count(user("most")), n)
	}
}

// TestRefusedConnectionsAreCheap: their requests look for nothing.
func TestRefusedConnectionsAreCheap(t *testing.T) {
	l := listenLimited(t, 10)
	var own []*Conn
	for range 6 {
		_, _, c := l.hold(user("most"))
		own = append(own, c)
	}
	c, _ := l.refused(user("most"))
	own[0].Idle(time.Now())
	l.limit.mu.Lock() // which the next request does not take
	defer l.limit.mu.Unlock()
	var err error
	if n := testing.AllocsPerRun(100, func() { err = c.Hold(user("most"), false) }); n != 0 || err == nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

// TestOthersAreNotRefusedWithTheFirst: a connection that was refused to its first user is held
// by another that sends requests on it, or that one learns its own reason.
func TestOthersAreNotRefusedWithTheFirst(t *testing.T) {
	l := listenLimited(t, 10)
	for range 6 {
		l.hold(user("most"))
	}
	c, _ := l.refused(user("most"))
	_, _, idle := l.hold(user("other"))
	idle.Idle(time.Now())
	err := c.Hold(user("other"), false)
	if err == nil || !strings.Contains(err.Error(), `the user "other": 1 of`) || !idle.Held() || l.limit.Throttled() != 1 {
		t.Errorf("another that has one: %v; its idle one is held: %v; %d are counted", err, idle.Held(), l.limit.Throttled())
	}
	if err := c.Hold(user("third"), false); err != nil || !c.Held() {
		t.Errorf("one that has none: %v, held: %v", err, c.Held())
	}
}

// TestAdministratorsAreNotRefusedWithTheirProxy, if the first request of a connection is of
// another user.
func TestAdministratorsAreNotRefusedWithTheirProxy(t *testing.T) {
	l, proxy := listenLimited(t, 10), Holder{Kind: Proxy, Name: "front"}
	for range 6 {
		l.hold(proxy)
	}
	c, _ := l.refused(proxy)
	if err := c.Hold(proxy, true); err != nil || !c.Held() {
		t.Errorf("%v, held: %v", err, c.Held())
	}
}

// TestClosedConnectionsAreNotHeld, whatever comes first.
func TestClosedConnectionsAreNotHeld(t *testing.T) {
	l := listenLimited(t, 10)
	_, server, request := l.open()
	server.Close()
	if err := FromContext(request).Hold(user("late"), false); err != nil || l.limit.InUse() != 0 || len(l.limit.holders) != 0 {
		t.Errorf("%v, %d are held", err, l.limit.InUse())
	}
}

// TestStatesOfHTTP are those of http.Server.
func TestStatesOfHTTP(t *testing.T) {
	l := listenLimited(t, 10)
	_, server, c := l.hold(user("a"))
	for _, step := range []struct {
		state http.ConnState
		idle  bool
	}{{http.StateNew, false}, {http.StateActive, false}, {http.StateIdle, true}, {http.StateClosed, true}, {http.StateHijacked, false}} {
		l.limit.NoteState(server, step.state)
		if idle := c.idleSince.Load() != busy; idle != step.idle {
			t.Errorf("%v: idle %v", step.state, idle)
		}
	}
}

// TestHeldConnectionsAreNotAllocatedFor: each request asks for its connection's state.
func TestHeldConnectionsAreNotAllocatedFor(t *testing.T) {
	l := listenLimited(t, 10)
	_, server, request := l.open()
	if err := FromContext(request).Hold(user("a"), false); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		l.limit.NoteState(server, http.StateActive)
		if c := FromContext(request); !c.Held() {
			t.Error("it is not held")
		}
		l.limit.NoteState(server, http.StateIdle)
	}); n != 0 {
		t.Errorf("%v allocations for a request", n)
	}
}

func TestCapacityWithoutALimit(t *testing.T) {
	if n := NewConnectionLimit(0, 5, discarded).Capacity(); n != math.MaxInt64 {
		t.Error(n)
	}
}
