package faultnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
)

// Balancer is a Proxy with several servers behind it, as a load balancer of
// connections has: each new connection goes to the next server in turn that
// accepts it. A connection keeps its server until it ends. So a client that keeps
// a connection, as those of HTTP/2 do, moves only when its server ends it.
//
// The faults of the Proxy are for all connections; Drain and Kill are for those
// of one server.
type Balancer struct {
	*Proxy
	group *group
}

// NewBalancer starts a balancer on a free port of 127.0.0.1 over targets, each a
// host:port that need not listen yet. The caller must Close it.
func NewBalancer(targets ...string) (*Balancer, error) {
	group := &group{}
	for _, target := range targets {
		if _, _, err := net.SplitHostPort(target); err != nil {
			return nil, fmt.Errorf("faultnet: a target must be host:port: %w", err)
		}
		group.all = append(group.all, backend{target: target})
	}
	p, err := listen(group)
	if err != nil {
		return nil, err
	}
	return &Balancer{p, group}, nil
}

// Drain keeps new connections from a server while on; those that are open stay.
// It is what a balancer does with a server whose /readyz fails.
func (b *Balancer) Drain(target string, on bool) {
	b.group.change(target, func(s *backend) { s.drained = on })
}

// Replace puts another server in the place of one, which keeps the connections
// that it has.
func (b *Balancer) Replace(target, by string) {
	b.group.change(target, func(s *backend) { s.target = by })
}

// Kill resets all connections to a server, as its crash would, and returns how
// many there were. New ones still go there if it takes them; call Drain first
// if they must not.
func (b *Balancer) Kill(target string) int {
	return b.cut(func(c *pair) bool { return c.target == target })
}

// Open returns how many connections each server has now.
func (b *Balancer) Open() map[string]int {
	open := map[string]int{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		open[c.target]++
	}
	return open
}

// group is the servers of a balancer, and which is next.
type group struct {
	mu   sync.Mutex // never held while dialing
	all  []backend
	next int
}

type backend struct {
	target  string
	drained bool
}

func (g *group) change(target string, change func(*backend)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.all, func(b backend) bool { return b.target == target })
	if i < 0 {
		panic(fmt.Sprintf("faultnet: the balancer has no target %s", target))
	}
	change(&g.all[i])
}

// rotation returns the servers that are not drained, beginning with the next one.
func (g *group) rotation() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var targets []string
	for i := range g.all {
		if b := g.all[(g.next+i)%len(g.all)]; !b.drained {
			targets = append(targets, b.target)
		}
	}
	if len(g.all) > 0 {
		g.next = (g.next + 1) % len(g.all)
	}
	return targets
}

// accepts reports whether a server has been neither drained nor replaced.
func (g *group) accepts(target string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.all, func(b backend) bool { return b.target == target && !b.drained })
}

var errNoServer = errors.New("faultnet: all servers are drained")

// dial connects to the first server in turn that can be reached.
func (g *group) dial(ctx context.Context, dialer *net.Dialer) (net.Conn, string, error) {
	err := errNoServer
	for _, target := range g.rotation() {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, "tcp", target); err == nil {
			return conn, target, nil
		}
	}
	return nil, "", err
}
