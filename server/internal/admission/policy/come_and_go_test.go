package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
)

// TestMetricsOfPoliciesThatComeAndGo: what was counted of a policy or a binding goes with it.
func TestMetricsOfPoliciesThatComeAndGo(t *testing.T) {
	f := newFixture(t)
	f.policies.conditions = expressions.NewConditionMetrics()
	const condition = "  matchConditions: [{name: always, expression: 'true'}]\n"
	const validating, mutating = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
	manifests := map[string]func(name string) string{
		validating: func(name string) string {
			return policyFor(name, "apps", "deployments", condition+"  validations: [{expression: 'false'}]\n") + "\n---\n" + bindingFor(name, "")
		},
		mutating: func(name string) string {
			return mutatingFor(name, "apps", "v1", "deployments", "Never", "ApplyConfiguration", "Object{metadata: Object.metadata{labels: {'a': 'b'}}}")
		},
	}
	ask := func() int {
		f.expect(deployment("d", "1", "a"), "failed expression: false")
		return f.series()
	}
	f.apply(manifests[validating]("stays"))
	f.apply(manifests[mutating]("stays"))
	one := ask()
	for kind, manifest := range manifests {
		for i := range 3 {
			name := fmt.Sprint("goes", i)
			f.apply(manifest(name))
			if ask() == one {
				t.Errorf("a %s has no metrics", kind)
			}
			f.remove(manifest(name))
			if now := ask(); now != one {
				t.Errorf("a %s and its binding leave %d series", kind, now-one)
			}
		}
	}
	f.remove(bindingFor("stays", ""))
	f.apply(strings.Replace(bindingFor("stays", ""), "stays-binding", "another", 1))
	if now := ask(); now != one {
		t.Errorf("a binding in the place of another makes %d series of %d", now, one)
	}
}

// series is how many metrics with labels the policies have.
func (f *fixture) series() (n int) {
	f.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(f.policies.Collectors(), f.policies.conditions.Collectors()...)...)
	families, err := registry.Gather()
	must(f, err)
	for _, family := range families {
		n += len(family.GetMetric())
	}
	return n
}
