//go:build linux

package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/tests/workload"
)

// fault happens to a cluster, and is over when make returns.
type fault struct {
	name string
	make func(*trouble)
}

// trouble is what a fault may use.
type trouble struct {
	t      *testing.T
	c      *cluster
	random *rand.Rand
	ctx    context.Context
}

// hold waits for as long as a fault lasts: mostly seconds, and now and then longer than
// what finds dead connections (15 s).
func (x *trouble) hold() {
	longest := 4 * time.Second
	if x.random.IntN(8) == 0 {
		longest = 20 * time.Second
	}
	workload.Wait(x.ctx, 200*time.Millisecond+time.Duration(x.random.Int64N(int64(longest))))
}

func (x *trouble) member() *member { return x.c.members[x.random.IntN(size)] }

func (x *trouble) leader() *member { return x.c.members[x.c.leader(x.t)] }

// follower is one of those that do not lead.
func (x *trouble) follower() *member {
	return x.c.members[(x.c.leader(x.t)+1+x.random.IntN(size-1))%size]
}

func (x *trouble) server() *apiserver { return x.c.servers[x.random.IntN(len(x.c.servers))] }

// restart kills the processes or ends them in order, and starts them again.
func (x *trouble) restart(with syscall.Signal, all ...*process) {
	for _, p := range all {
		p.end(x.t, with)
	}
	x.hold()
	for _, p := range all {
		p.start(x.t)
	}
	for _, p := range all {
		p.awaitReady(x.t)
	}
}

func (x *trouble) pause(p *process) {
	p.pause(x.t, true)
	x.hold()
	p.pause(x.t, false)
}

func (x *trouble) slowDisk(p *process) {
	p.slowDisk(x.t, time.Duration(50+x.random.IntN(1500))*time.Millisecond)
	x.hold()
	p.slowDisk(x.t, 0)
}

// faultsOfProcesses can happen everywhere.
var faultsOfProcesses = []fault{
	{"a member is killed", func(x *trouble) { x.restart(syscall.SIGKILL, x.member().process) }},
	{"the leader is killed", func(x *trouble) { x.restart(syscall.SIGKILL, x.leader().process) }},
	{"two members are killed", func(x *trouble) {
		i := x.random.IntN(size)
		x.restart(syscall.SIGKILL, x.c.members[i].process, x.c.members[(i+1)%size].process)
	}},
	{"all members are killed", func(x *trouble) {
		x.restart(syscall.SIGKILL, x.c.members[0].process, x.c.members[1].process, x.c.members[2].process)
	}},
	{"a member is restarted in order", func(x *trouble) { x.restart(syscall.SIGTERM, x.member().process) }},
	{"a follower is stopped (SIGSTOP)", func(x *trouble) { x.pause(x.follower().process) }},
	{"the leader is stopped (SIGSTOP)", func(x *trouble) { x.pause(x.leader().process) }},
	{"a follower's disk is slow", func(x *trouble) { x.slowDisk(x.follower().process) }},
	{"the leader's disk is slow", func(x *trouble) { x.slowDisk(x.leader().process) }},
	{"the leader hands over", func(x *trouble) { x.handOver() }},
	{"a member is defragmented", func(x *trouble) { x.defragment(x.member()) }},
	{"a server is killed", func(x *trouble) { x.restart(syscall.SIGKILL, x.server().process) }},
	{"a server is restarted in order", func(x *trouble) { x.restart(syscall.SIGTERM, x.server().process) }},
	{"a server is stopped (SIGSTOP)", func(x *trouble) { x.pause(x.server().process) }},
}

// faultsOfNetworks need namespaces.
var faultsOfNetworks = []fault{
	{"the leader is parted from its followers", func(x *trouble) { x.cut(x.leader().host, peers) }},
	{"the leader is parted from all", func(x *trouble) { x.cut(x.leader().host, peers, store) }},
	{"a follower is parted from the members", func(x *trouble) { x.cut(x.follower().host, peers) }},
	{"a follower is parted from all", func(x *trouble) { x.cut(x.follower().host, peers, store) }},
	{"two members cannot reach each other", func(x *trouble) {
		i := x.random.IntN(size)
		a, b := x.c.members[i], x.c.members[(i+1)%size]
		a.host.mute(x.t, peers, b.host, true)
		b.host.mute(x.t, peers, a.host, true)
		x.hold()
		a.host.mute(x.t, peers, b.host, false)
		b.host.mute(x.t, peers, a.host, false)
	}},
	{"the leader hears a follower, which does not hear it", func(x *trouble) {
		leader, follower := x.leader(), x.follower()
		leader.host.mute(x.t, peers, follower.host, true)
		x.hold()
		leader.host.mute(x.t, peers, follower.host, false)
	}},
	{"a server cannot reach one member", func(x *trouble) {
		s, m := x.server(), x.member()
		s.host.mute(x.t, store, m.host, true)
		x.hold()
		s.host.mute(x.t, store, m.host, false)
	}},
	{"one member cannot reach a server", func(x *trouble) {
		s, m := x.server(), x.member()
		m.host.mute(x.t, store, s.host, true)
		x.hold()
		m.host.mute(x.t, store, s.host, false)
	}},
	{"a server is parted from all members", func(x *trouble) { x.partServer(x.server()) }},
	{"clients cannot reach a server", func(x *trouble) { x.cut(x.server().host, front) }},
}

func (x *trouble) cut(h *host, all ...segment) {
	for _, s := range all {
		h.cut(x.t, s, true)
	}
	x.hold()
	for _, s := range all {
		h.cut(x.t, s, false)
	}
}

// partServer parts a server from etcd for as long as it takes until its /readyz says so.
func (x *trouble) partServer(s *apiserver) {
	s.host.cut(x.t, store, true)
	begun := time.Now()
	for ready, text := s.health.get(); ; ready, text = s.health.get() {
		if !ready && strings.Contains(text, "[-]storage failed") {
			x.t.Logf("%v after %s lost etcd its /readyz says: %s", round(time.Since(begun)), s.name, strings.Join(failedChecks(text), "; "))
			if !strings.Contains(text, "etcd at http://") {
				x.t.Errorf("/readyz does not say what %s cannot reach: %s", s.name, text)
			}
			break
		}
		if time.Since(begun) > workload.Timeout {
			x.t.Errorf("%s has lost etcd, and its /readyz says %v, %s", s.name, ready, text)
			break
		}
		workload.Wait(x.ctx, 50*time.Millisecond)
	}
	x.hold()
	s.host.cut(x.t, store, false)
}

func failedChecks(text string) (failed []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	return failed
}

// handOver moves the leadership to another member.
func (x *trouble) handOver() {
	from, to := x.leader(), x.follower()
	ctx, cancel := context.WithTimeout(x.ctx, 10*time.Second) //passes: the member may be gone
	defer cancel()
	status, err := to.admin.Status(ctx, to.clientURL)
	if err == nil {
		_, err = from.admin.MoveLeader(ctx, status.Header.MemberId)
	}
	if err != nil { // it has changed meanwhile
		x.t.Logf("%s does not hand over to %s: %v", from.name, to.name, err)
	}
}

func (x *trouble) defragment(m *member) {
	ctx, cancel := context.WithTimeout(x.ctx, time.Minute)
	defer cancel()
	if _, err := m.admin.Defragment(ctx, m.clientURL); err != nil {
		x.t.Errorf("%s is not defragmented: %v", m.name, err)
	}
}

// fill takes all of a member's quota.
func (x *trouble) fill(m *member) {
	value := strings.Repeat("x", 1<<20)
	for range 200 {
		_, err := m.admin.Put(x.ctx, "/filler", value)
		if err != nil {
			if !errors.Is(err, rpctypes.ErrNoSpace) {
				x.t.Logf("filling %s: %v", m.name, err)
			}
			return
		}
	}
	x.t.Errorf("%s has no end", m.name)
}

// free does what docs/operators/several-servers.md says about a quota that is reached: delete
// what takes the room, compact, and run levelwire defrag, which ends the alarm.
func (x *trouble) free(m *member, levelwire string) {
	ctx, cancel := context.WithTimeout(x.ctx, time.Minute)
	defer cancel()
	deleted, err := m.admin.Delete(ctx, "/filler")
	if err == nil {
		_, err = m.admin.Compact(ctx, deleted.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		x.t.Error(err)
	}
	out, err := exec.CommandContext(ctx, levelwire, "defrag", "--kubeconfig="+filepath.Join(x.c.servers[0].dir, "admin.kubeconfig")).CombinedOutput()
	x.t.Logf("levelwire defrag: %v: %s", err, out)
	if err != nil {
		x.t.Error(err)
	}
}
