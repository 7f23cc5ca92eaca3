package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

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
