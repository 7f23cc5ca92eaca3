package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/health"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/client/metrics"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is one of several that run the program. A test asks its handler without a
// connection, because time in a bubble stands still while one is waited for.
type process struct {
	faults levelwiretest.Faults // between it and the server
	server health.Server
	ended  chan error
	stop   func()
}

func start(t *testing.T, s *levelwiretest.Server) *process {
	ctx, stop := context.WithCancel(t.Context())
	p := &process{ended: make(chan error, 1), stop: stop}
	p.server.Listener = &idle{closed: make(chan struct{})}
	requests := metrics.NewRequests()
	c := s.Client(client.Options{Observer: requests, WrapTransport: p.faults.Wrap})
	go func() { p.ended <- run(ctx, c, "default", &p.server, requests) }()
	synctest.Wait()
	return p
}

func (p *process) get(path string) (code int, body string) {
	w := httptest.NewRecorder()
	p.server.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// leads reports what the metrics say.
func (p *process) leads() bool {
	_, body := p.get("/metrics")
	return strings.Contains(body, `leader_election_master_status{name="greeter"} 1`)
}

// idle is a listener to which nothing connects.
type idle struct {
	once   sync.Once
	closed chan struct{}
}

func (l *idle) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l *idle) Close() error              { l.once.Do(func() { close(l.closed) }); return nil }
func (l *idle) Addr() net.Addr            { return &net.TCPAddr{} }

// greets checks that a ConfigMap gets its greeting.
func greets(t *testing.T, s *levelwiretest.Server, name string) {
	t.Helper()
	configMaps := client.For[*corev1.ConfigMap](s.Client(client.Options{})).Namespace("default")
	if _, err := configMaps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"greet": name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // takes no time
	synctest.Wait()
	found, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
	if want := "Hello, " + name + "!"; err != nil || found.Data["text"] != want {
		t.Errorf("the greeting is %q, %v, want %q", found.Data["text"], err, want)
	}
}

// TestAnotherProcessTakesOver: when the leader ends, and when it cannot reach the server.
func TestAnotherProcessTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := levelwiretest.StartInMemory(t)
		first := start(t, s)
		greets(t, s, "world")
		second := start(t, s)
		greets(t, s, "again")
		for name, p := range map[string]*process{"first": first, "second": second} {
			if code, body := p.get("/readyz?verbose"); code != http.StatusOK {
				t.Errorf("%s is not ready: %s", name, body)
			}
		}
		if !first.leads() || second.leads() {
			t.Errorf("the first leads: %t, the second: %t", first.leads(), second.leads())
		}

		first.stop()
		if err := <-first.ended; err != nil {
			t.Error(err)
		}
		greets(t, s, "second")
		if !second.leads() {
			t.Error("the second does not lead after the first has ended")
		}

		third := start(t, s)
		second.faults.SetDown(true)
		if err := <-second.ended; !errors.Is(err, leader.ErrLost) {
			t.Errorf("the second ended with %v, want the loss of the lead", err)
		}
		greets(t, s, "third")
		third.stop()
		if err := <-third.ended; err != nil {
			t.Error(err)
		}
	})
}

// TestReadiness: a process without a server is not ready, and lives on.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := levelwiretest.StartInMemory(t)
		leads, waits := start(t, s), start(t, s)
		waits.faults.SetDown(true)
		time.Sleep(time.Hour)
		if code, _ := waits.get("/readyz"); code == http.StatusOK {
			t.Error("it is ready with a cache of an hour's age")
		}
		if code, body := waits.get("/livez"); code != http.StatusOK {
			t.Errorf("it is to be restarted: %s", body)
		}
		waits.faults.SetDown(false)
		time.Sleep(time.Minute)
		if code, body := waits.get("/readyz?verbose"); code != http.StatusOK {
			t.Errorf("it is not ready: %s", body)
		}
		for _, p := range []*process{leads, waits} {
			p.stop()
			if err := <-p.ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestRights: the Role allows each request that the program sends, and nothing else but
// list, which this server makes unnecessary.
func TestRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := levelwiretest.StartInMemory(t)
		c := s.Client(client.Options{})
		levelwiretest.ApplyFiles(t, c, "deploy.yaml")
		role, err := client.For[*rbacv1.Role](c).Namespace("default").Get(t.Context(), "greeter", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, s)
		greets(t, s, "world")
		p.stop()
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
		used := map[string]bool{"configmaps list": true}
		for _, r := range p.faults.Requests() {
			if r.Resource == "" {
				continue // discovery is allowed to all
			}
			used[r.Resource+" "+r.Verb] = true
			if r.Namespace != "default" || !allows(role, r) {
				t.Errorf("the Role does not allow to %s %s of group %q in namespace %q", r.Verb, r.Resource, r.Group, r.Namespace)
			}
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				if !used[rule.Resources[0]+" "+verb] {
					t.Errorf("the Role allows to %s %s, which the program does not", verb, rule.Resources[0])
				}
			}
		}
	})
}

func allows(role *rbacv1.Role, r levelwiretest.Request) bool {
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource) && slices.Contains(rule.Verbs, r.Verb)
	})
}
