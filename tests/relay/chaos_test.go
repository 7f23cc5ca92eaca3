package relay

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// cluster is an upstream, relays behind networks that fail, and a balancer in front of them.
type cluster struct {
	t        *testing.T
	upstream *levelwiretest.Server
	options  []func(*server.Config)
	behind   *faultnet.Balancer // from the relays to the upstream
	front    *faultnet.Balancer // from the clients to the relays
	relays   []*relayed
}

// relayed is a relay with its network to the upstream.
type relayed struct {
	server *levelwiretest.Server
	link   *faultnet.Proxy
}

func newCluster(t *testing.T, relays int, options ...func(*server.Config)) *cluster {
	t.Helper()
	token := tokenFile(t)
	c := &cluster{t: t, options: append(options, func(c *server.Config) { c.TokenAuthFile = token })}
	c.upstream = levelwiretest.Start(t, c.options...)
	c.behind = c.balancer(hostOf(t, c.upstream))
	for range relays {
		c.relays = append(c.relays, c.newRelay())
	}
	var hosts []string
	for _, r := range c.relays {
		hosts = append(hosts, hostOf(t, r.server))
	}
	c.front = c.balancer(hosts...)
	return c
}

func (c *cluster) balancer(targets ...string) *faultnet.Balancer {
	c.t.Helper()
	b, err := faultnet.NewBalancer(targets...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = b.Close() })
	return b
}

func (c *cluster) newRelay() *relayed {
	c.t.Helper()
	link, err := faultnet.New(c.behind.Addr())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = link.Close() })
	return &relayed{startRelay(c.t, tokenConfig(link.Addr()), c.options...), link}
}

// replace kills a relay, and starts another one in its place.
func (c *cluster) replace(i int) {
	old := c.relays[i]
	host := hostOf(c.t, old.server)
	c.front.Drain(host, true)
	c.front.Kill(host)
	old.link.Refuse(true)
	old.link.Cut()
	c.relays[i] = c.newRelay()
	c.front.Replace(host, hostOf(c.t, c.relays[i].server))
	c.front.Drain(hostOf(c.t, c.relays[i].server), false)
	old.server.Stop()
}

// TestHistoriesThroughRelays: whatever happens to relays and to their connections, no event is
// lost or repeated, nothing that was deleted comes back, and no list is older than it may be.
func TestHistoriesThroughRelays(t *testing.T) {
	c := newCluster(t, 3, func(c *server.Config) { c.ExactHistory = true })
	random := rand.New(rand.NewPCG(uint64(*seed), 1))
	p := begin(t, c)
	p.suffer(*duration, func() { c.relayFault(random) })
	p.end(true)
}

// TestHistoriesOfARestartedUpstream: the upstream is restarted, too, and keeps little history.
// Then watchers may miss changes that others followed, and still nothing is lost, nothing comes
// back, and no list is older than it may be.
func TestHistoriesOfARestartedUpstream(t *testing.T) {
	directory := t.TempDir()
	c := newCluster(t, 2, func(c *server.Config) {
		if c.Relay != nil {
			return
		}
		c.DataDir, c.Storage = directory, server.Embedded
		c.CompactionInterval, c.CompactionRetention, c.CompactionRevisions = 300*time.Millisecond, time.Millisecond, 20
	})
	random := rand.New(rand.NewPCG(uint64(*seed), 2))
	count := 0
	p := begin(t, c)
	p.suffer(*duration, func() {
		if count++; count%6 == 0 {
			t.Log("the upstream is restarted")
			c.restart(func() {})
			return
		}
		c.relayFault(random)
	})
	p.end(false)
}

// restart kills the connections to the upstream, and starts it anew with what it has stored.
// Meanwhile, something else may be done to that.
func (c *cluster) restart(meanwhile func()) {
	host := hostOf(c.t, c.upstream)
	c.behind.Drain(host, true)
	c.behind.Kill(host)
	c.upstream.Stop()
	meanwhile()
	c.upstream = levelwiretest.Start(c.t, c.options...)
	c.behind.Replace(host, hostOf(c.t, c.upstream))
	c.behind.Drain(hostOf(c.t, c.upstream), false)
}

// relayFault makes one fault of a relay.
func (c *cluster) relayFault(random *rand.Rand) {
	c.t.Helper()
	faults := []struct {
		name string
		do   func(r *relayed, i int)
	}{
		{"the relay is killed", func(_ *relayed, i int) { c.replace(i) }},
		{"its connections to the upstream are cut", func(r *relayed, _ int) { r.link.Cut() }},
		{"its connections to the clients are cut", func(r *relayed, _ int) { c.front.Kill(hostOf(c.t, r.server)) }},
		{"it gets nothing from the upstream", func(r *relayed, _ int) { r.link.Stall(faultnet.ToClient, true) }},
		{"the upstream gets nothing from it", func(r *relayed, _ int) { r.link.Stall(faultnet.ToServer, true) }},
		{"its stream is torn", func(r *relayed, _ int) { r.link.CutAfter(faultnet.ToClient, int64(random.IntN(3000))) }},
		{"its network is slow", func(r *relayed, _ int) { r.link.Delay(faultnet.ToClient, 30*time.Millisecond) }},
		{"its network heals", func(r *relayed, _ int) { r.link.Heal() }},
	}
	i := random.IntN(len(c.relays))
	fault := faults[random.IntN(len(faults))]
	c.t.Logf("relay %d: %s", i, fault.name)
	fault.do(c.relays[i], i)
}
