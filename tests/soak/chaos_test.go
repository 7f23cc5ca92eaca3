package soak

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/faultnet"
)

// chaos makes trouble.
type chaos struct {
	host     *host
	proxy    *faultnet.Proxy
	subjects []subject
	random   *rand.Rand
	counts   tally
}

// tally counts what was done.
type tally map[string]int

// kinds of trouble, each as often as it stands here.
var kinds = []string{
	"cut", "cut", "cut", "cut within a message", "cut within a message", "silence", "silence", "deaf", "refuse", "slow", "half close",
	"stop", "kill", "handlers", "handlers", "handlers", "restart", "restart",
}

// make makes trouble for so long, and then lifts all of it.
func (c *chaos) make(t *testing.T, d time.Duration) {
	t.Helper()
	if c.counts == nil {
		c.counts = tally{}
	}
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); {
		kind := kinds[c.random.IntN(len(kinds))]
		c.counts[kind]++
		c.once(t, kind)
		c.proxy.Heal()
		wait(t.Context(), c.upTo(time.Second))
	}
}

func (c *chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.random.Int64N(int64(d))) }

func (c *chaos) once(t *testing.T, kind string) {
	t.Helper()
	way := faultnet.Direction(c.random.IntN(2))
	one := c.subjects[c.random.IntN(len(c.subjects))]
	switch kind {
	case "cut":
		c.proxy.Cut()
	case "cut within a message":
		c.proxy.CutAfter(faultnet.ToClient, c.random.Int64N(20_000))
		wait(t.Context(), c.upTo(time.Second))
	case "silence":
		c.proxy.Stall(faultnet.ToClient, true)
		wait(t.Context(), c.upTo(3*time.Second))
	case "deaf":
		c.proxy.Stall(faultnet.ToServer, true)
		wait(t.Context(), c.upTo(3*time.Second))
	case "refuse":
		c.proxy.Refuse(true)
		c.proxy.Cut()
		wait(t.Context(), c.upTo(2*time.Second))
	case "slow":
		c.proxy.Limit(way, 20_000)
		wait(t.Context(), c.upTo(2*time.Second))
	case "half close":
		c.proxy.CloseWrite(way)
	case "stop":
		c.host.end(t, syscall.SIGTERM)
		wait(t.Context(), c.upTo(time.Second))
		c.host.start(t)
	case "kill":
		c.host.end(t, syscall.SIGKILL)
		wait(t.Context(), c.upTo(time.Second))
		c.host.start(t)
	case "handlers":
		one.disturb(t, c.random)
	case "restart":
		one.restart(t)
	default:
		panic(fmt.Sprintf("no trouble is called %q", kind))
	}
}
