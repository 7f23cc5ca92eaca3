package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/webhookclient"
)

// TestUnusedConnections: those are closed that no hook uses any more, also when others of their configuration stay.
func TestUnusedConnections(t *testing.T) {
	a, b, c := &webhookclient.Client{}, &webhookclient.Client{}, &webhookclient.Client{}
	before, now := []*hook{{client: a}, {}, {client: b}}, []*hook{{client: c}, {}, {client: b}}
	if got := unused(before, now); !slices.Equal(got, []*webhookclient.Client{a}) {
		t.Errorf("%d are unused: %v", len(got), got)
	}
	if got := unused(before, nil); !slices.Equal(got, []*webhookclient.Client{a, b}) {
		t.Errorf("%d are unused of hooks that are gone: %v", len(got), got)
	}
}

// TestManyHooks: which connections are still used is looked up. When each hook was compared with each, as many as this took
// longer than all tests of the package may.
func TestManyHooks(t *testing.T) {
	const many = 2_000_000
	last, other := &hook{client: &webhookclient.Client{}}, &hook{client: &webhookclient.Client{}}
	before, now := slices.Repeat([]*hook{last}, many), append(slices.Repeat([]*hook{other}, many-1), last)
	if got := unused(before, now); len(got) != 0 {
		t.Errorf("%d are unused", len(got))
	}
}

// TestConditionsAreCompiledByRequests: reading a configuration, for which all writes wait, compiles nothing.
func TestConditionsAreCompiledByRequests(t *testing.T) {
	c := &configurations{plugin: &Plugin{}}
	made := 0
	of := func() *hook {
		made++ // none equals another, which would be compiled already
		condition := strings.Repeat("object.a == object.b && ", 200) + fmt.Sprintf("object.c != 'conditions %d'", made)
		return c.newHook("c", spec{Name: "h", MatchConditions: []admissionv1.MatchCondition{{Name: "m", Expression: condition}}}, nil)
	}
	if read, used := testing.AllocsPerRun(3, func() { of() }), testing.AllocsPerRun(3, func() { of().conditions() }); read > 200 || used < 2000 {
		t.Errorf("%v allocations for a configuration, and %v with its conditions", read, used)
	}
}

// TestMetricsOfWebhooksThatComeAndGo: what was counted of a webhook goes with it.
func TestMetricsOfWebhooksThatComeAndGo(t *testing.T) {
	p := &Plugin{metrics: newMetrics(), opts: Options{Conditions: expressions.NewConditionMetrics()}}
	c := &configurations{plugin: p, byName: map[string][]*hook{}}
	c.hooks.Store(new([]*hook))
	configure := func(names ...string) {
		c.byName["c"] = nil
		for _, name := range names {
			c.byName["c"] = append(c.byName["c"], &hook{spec: spec{Name: name}})
		}
		c.publish()
		for _, name := range names {
			p.metrics.observe(name, c.kind(), "CREATE", time.Now(), false, 200)
		}
	}
	series := func() int {
		registry := prometheus.NewRegistry()
		registry.MustRegister(p.Collectors()...)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	configure("stays", "goes")
	two := series()
	for i := range 100 {
		configure("stays", fmt.Sprint("other", i))
	}
	if now := series(); now != two {
		t.Errorf("two webhooks have %d series, and %d after a hundred others", two, now)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint("many", i)
	}
	configure(many...)
	configure("stays", "last")
	if now := series(); now != two {
		t.Errorf("two webhooks have %d series, and %d after a thousand others at once", two, now)
	}
}
