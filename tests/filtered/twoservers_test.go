package filtered

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/filteredlist"
	"github.com/levelwire/levelwire/tests/workload"
)

// pair is two servers on one etcd, and a client that moves between them.
type pair struct {
	t    *testing.T
	a, b *host
	wire *faultnet.Proxy // between b and etcd
	*writer
	client  *client
	checker *checker
}

func newPair(t *testing.T) *pair {
	t.Helper()
	store := newStore(t)
	p := &pair{t: t}
	var err error
	if p.wire, err = faultnet.New(store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.wire.Close() }) // b has ended
	p.a = newHost(t, false, "http://"+store, nil)
	p.b = newHost(t, false, "http://"+p.wire.Addr(), p.a)
	p.writer = newWriter(t, 1, p.a, p.b)
	p.prepare()
	transport := p.a.transport(t, true)
	t.Cleanup(transport.CloseIdleConnections)
	p.client = &client{
		selection: selection{reader: reader{identities[0], secrets}}, name: "the client", form: asJSON, calm: new(atomic.Bool),
		http: &http.Client{Transport: transport}, failure: t.Errorf,
	}
	// What a request gets is by the policy of when it was made, however late it comes.
	late := func(time.Time) time.Duration { return time.Hour }
	p.checker = &checker{client: p.client, model: p.model, exact: true, shared: true, late: late, fail: t.Errorf}
	return p
}

// at has what is written next go to one of the servers.
func (p *pair) at(h *host) *pair {
	p.urls = []string{h.config.Host}
	return p
}

// toggleReader lets the client's user read a namespace, or not any more.
func (p *pair) toggleReader(namespace string) {
	p.t.Helper()
	p.bind("rolebindings", "RoleBinding", "of-the-client", bound{
		namespace: namespace,
		role:      rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		subjects:  []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: identities[0].user}},
	}, false)
}

// mark writes an object that the client always sees, and returns the revision: all that came
// before it has been sent when it is.
func (p *pair) mark() int64 {
	p.t.Helper()
	return p.put(secrets, "e", "mark", "red")
}

// follow has the client watch at a server from a version until it gets the change at a revision;
// from 0 until it has the initial state. Everything that it gets is checked.
func (p *pair) follow(h *host, from, until int64) {
	p.t.Helper()
	if err := p.tryFollow(p.t.Context(), h, from, until); err != nil {
		p.t.Errorf("the watch at %s from %d to %d: %v", h.config.Host, from, until, err)
	}
}

func (p *pair) tryFollow(ctx context.Context, h *host, from, until int64) error {
	defer func() { p.checker.replay(p.client.take()) }()
	p.client.url = h.config.Host
	q := p.client.query(filteredlist.True)
	for name, value := range map[string]string{"watch": "1", "allowWatchBookmarks": "true"} {
		q.Set(name, value)
	}
	if from == 0 {
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		q.Set("resourceVersion", fmt.Sprint(from))
	}
	begun := time.Now()
	next, end, err := p.client.open(ctx, q)
	if err != nil {
		return err
	}
	defer end()
	p.client.note(item{what: opened, at: begun, revision: from, rewound: true})
	for {
		i, err := next()
		if err != nil {
			return err
		}
		i.at = time.Now()
		p.client.note(i)
		if i.what == bookmark && i.end || from != 0 && i.what == changedObject && i.revision == until {
			return nil
		}
	}
}

// resume is follow at a server that has started, and may not have read all of its history yet.
func (p *pair) resume(h *host, from, until int64) {
	p.t.Helper()
	var err error
	workload.Await(p.t, func() string { return fmt.Sprintf("a watch from %d at a server that has started: %v", from, err) }, func() bool {
		err = p.tryFollow(p.t.Context(), h, from, until)
		return err == nil
	})
}

// lists lists at a server, consistently and not, whole and in pages.
func (p *pair) lists(h *host) {
	p.t.Helper()
	for _, query := range []string{"", "resourceVersion=0", "limit=1"} {
		if err := p.list(p.t.Context(), h, query); err != nil {
			p.t.Errorf("a list at %s with %q: %v", h.config.Host, query, err)
		}
	}
}

func (p *pair) list(ctx context.Context, h *host, query string) error {
	defer func() { p.checker.replay(p.client.take()) }()
	p.client.url = h.config.Host
	q := p.client.query(filteredlist.True)
	if name, value, ok := strings.Cut(query, "="); ok {
		q.Set(name, value)
	}
	_, err := p.client.pages(ctx, q, query != "resourceVersion=0", true)
	return err
}

// TestTwoServers on one store: a right that is granted or withdrawn through one of them counts at
// the other, for clients that come with versions of either, while one is killed, stopped or cut off
// from the store.
func TestTwoServers(t *testing.T) {
	p := newPair(t)
	a, b := p.a, p.b
	both := []*host{a, b}
	p.at(a).toggleReader("a")
	p.at(b).toggleReader("e")
	for _, key := range []string{"a/o0", "b/o0", "c/o0"} {
		namespace, name, _ := strings.Cut(key, "/")
		p.put(secrets, namespace, name, "red")
	}
	first := p.at(a).mark()
	p.follow(b, 0, first)
	for _, h := range both {
		p.lists(h)
	}

	p.at(a).toggleReader("b")
	p.at(b).put(secrets, "a", "o0", "blue")
	p.at(a).toggleReader("a") // withdrawn: what was written before is not sent any more
	second := p.at(b).mark()
	for _, h := range both {
		p.follow(h, first, second)
		p.lists(h)
	}

	a.end(t, syscall.SIGKILL)
	p.at(b).put(secrets, "b", "o1", "red")
	p.toggleReader("c")
	p.remove(secrets, "b", "o0")
	p.toggleReader("b")
	third := p.mark()
	p.follow(b, second, third)
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	for _, h := range both {
		p.resume(h, first, third)
		p.resume(h, second, third)
		p.lists(h)
	}

	b.end(t, syscall.SIGTERM)
	p.at(a).toggleReader("a")
	fourth := p.mark()
	p.follow(a, third, fourth)
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	p.resume(b, third, fourth)
	p.lists(b)

	// A server that hears nothing of the store does not answer by what it knew before.
	p.wire.Stall(faultnet.ToClient, true)
	p.at(a).toggleReader("c")
	fifth := p.mark()
	for what, ask := range map[string]func(context.Context) error{
		"a list":  func(ctx context.Context) error { return p.list(ctx, b, "resourceVersion=0") },
		"a watch": func(ctx context.Context) error { return p.tryFollow(ctx, b, first, fifth) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) //passes: the server is cut off
		if err := ask(ctx); err == nil {
			t.Errorf("a server that is cut off from its store answers %s", what)
		}
		cancel()
	}
	p.wire.Heal()
	workload.Await(t, func() string { return "an answer of a server that was cut off" }, func() bool { return p.list(t.Context(), b, "") == nil })
	p.resume(b, fourth, fifth)
	p.lists(b)
	if want := p.model.view(&p.client.selection, p.model.latest); !maps.Equal(p.checker.holds, want) {
		t.Errorf("the client holds %v, and visible is %v", sorted(p.checker.holds), sorted(want))
	}
}
