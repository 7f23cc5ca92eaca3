package soak

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/tests/workload"
)

// chaos makes trouble.
type chaos struct {
	host     *host
	objects  client.Resource[*corev1.ConfigMap] // past the proxy
	http     *http.Client                       // the same
	proxy    *faultnet.Proxy
	pages    *proxyPages
	subjects []workload.Subject
	random   *rand.Rand

	kinds  []string
	counts tally
	// recoveries are the longest times between the end of a fault and the first write.
	recoveries map[string]time.Duration
	rotated    time.Time // when the server's certificate was waited for
}

// tally counts what was done.
type tally map[string]int

// kinds of trouble, each as often as it stands here.
var kinds = []string{
	"cut", "cut", "cut", "cut within a message", "cut within a message", "silence", "silence", "deaf", "refuse", "slow", "half close",
	"page", "page", "page", "page", "stop", "kill", "handlers", "handlers", "handlers", "restart", "restart", "quota",
}

// badAnswers are the names of faults, in one order whatever the run.
var badAnswers = slices.Sorted(maps.Keys(faults))

// What some systems cannot do.
var (
	diskKinds  = []string{"disk full", "disk full to the last byte", "disk fails", "slow disk"}
	clockKinds = []string{"clock", "server's clock"}
)

func newChaos(t *testing.T, h *host, direct *client.Client, proxy *faultnet.Proxy, shown *proxyPages, subjects []workload.Subject, random *rand.Rand) *chaos {
	t.Helper()
	security, err := rest.TLSConfigFor(h.credentials.lasting(h.url))
	if err != nil {
		t.Fatal(err)
	}
	// Each request has a connection of its own, and sees the server's latest certificate.
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	c := &chaos{
		host: h, objects: client.For[*corev1.ConfigMap](direct).Namespace("default"), http: &http.Client{Transport: transport},
		proxy: proxy, pages: shown, subjects: subjects, random: random,
		kinds: slices.Concat(kinds, badAnswers), counts: tally{}, recoveries: map[string]time.Duration{}, rotated: time.Now(),
	}
	if h.disk != nil {
		c.kinds = append(slices.Clip(c.kinds), diskKinds...)
	}
	if shiftWall != nil {
		c.kinds = append(slices.Clip(c.kinds), clockKinds...)
	}
	if *only != "" {
		c.kinds = strings.Split(*only, ",")
	}
	return c
}

func (c *chaos) stop() {
	if shiftWall != nil {
		shiftWall(0)
	}
}

// make makes trouble for so long, and then lifts all of it.
func (c *chaos) make(t *testing.T, d time.Duration) {
	t.Helper()
	if time.Since(c.rotated) > *servingInterval {
		c.awaitServingCertificate(t)
	}
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); {
		kind := c.kinds[c.random.IntN(len(c.kinds))]
		c.counts[kind]++
		c.once(t, kind)
		c.proxy.Heal()
		workload.Wait(t.Context(), c.upTo(time.Second))
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
		workload.Wait(t.Context(), c.upTo(time.Second))
	case "silence":
		c.proxy.Stall(faultnet.ToClient, true)
		workload.Wait(t.Context(), c.upTo(3*time.Second))
	case "deaf":
		c.proxy.Stall(faultnet.ToServer, true)
		workload.Wait(t.Context(), c.upTo(3*time.Second))
	case "refuse":
		c.proxy.Refuse(true)
		c.proxy.Cut()
		workload.Wait(t.Context(), c.upTo(2*time.Second))
	case "slow":
		c.proxy.Limit(way, 20_000)
		workload.Wait(t.Context(), c.upTo(2*time.Second))
	case "half close":
		c.proxy.CloseWrite(way)
	case "page":
		c.show(t, pages[c.random.IntN(len(pages))])
	case "stop":
		c.host.end(t, syscall.SIGTERM)
		workload.Wait(t.Context(), c.upTo(time.Second))
		c.host.start(t)
	case "kill":
		c.host.end(t, syscall.SIGKILL)
		workload.Wait(t.Context(), c.upTo(time.Second))
		c.host.start(t)
	case "handlers":
		one.Disturb(t, c.random)
	case "restart":
		one.Restart(t)
	case "quota":
		c.exceedQuota(t)
	case "disk full":
		c.fillDisk(t, diskReserve*3/4)
	case "disk full to the last byte":
		c.fillDisk(t, 0)
	case "disk fails":
		c.failDisk(t)
	case "slow disk":
		c.slowDisk(t)
	case "clock":
		c.jump(t, false)
	case "server's clock":
		c.jump(t, true)
	default:
		bad, known := faults[kind]
		if !known {
			panic(fmt.Sprintf("no trouble is called %q", kind))
		}
		c.show(t, bad)
	}
}

// show has requests answered by a page for a while, those that follow a cut among them.
func (c *chaos) show(t *testing.T, shown page) {
	t.Helper()
	c.pages.shown.Store(&shown)
	c.proxy.Cut()
	workload.Wait(t.Context(), time.Second+c.upTo(2*time.Second))
	c.pages.shown.Store(nil)
}
