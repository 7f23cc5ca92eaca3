package policy

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// realistic is the expressions of a policy as policy libraries have them, with constants of
// its own, so that nothing is shared.
func realistic(i int) string {
	return policyFor(fmt.Sprintf("policy-%d", i), "apps", "deployments", fmt.Sprintf(`  matchConditions:
  - {name: not-%[1]d, expression: "request.userInfo.username != 'system:serviceaccount:team-%[1]d:deployer'"}
  variables:
  - {name: containers, expression: "object.spec.template.spec.containers + (has(object.spec.template.spec.initContainers) ? object.spec.template.spec.initContainers : [])"}
  - {name: allowed, expression: "['registry-%[1]d.example.com/', 'mirror-%[1]d.example.com/', 'registry/']"}
  - {name: bad, expression: "variables.containers.filter(c, !variables.allowed.exists(p, c.image.startsWith(p)))"}
  - {name: exempt, expression: "has(object.metadata.labels) && 'exempt-%[1]d' in object.metadata.labels && object.metadata.labels['exempt-%[1]d'] == 'true'"}
  validations:
  - {expression: "variables.exempt || variables.bad.size() == 0", messageExpression: "'images of team %[1]d must come from ' + variables.allowed.join(', ') + ', not: ' + variables.bad.map(c, c.image).join(', ')"}
  - {expression: "variables.exempt || variables.containers.all(c, !has(c.resources) || !has(c.resources.limits) || !('memory' in c.resources.limits) || quantity(c.resources.limits['memory']).isLessThan(quantity('%[1]dMi')))"}
  - {expression: "variables.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || c.securityContext.privileged == false || c.name.matches('^trusted-%[1]d-.*$'))"}
  - {expression: "object.spec.replicas <= 100%[1]d", message: too many}
`, i)) + "\n---\n" + bindingFor(fmt.Sprintf("policy-%d", i), "")
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemoryOfManyPolicies holds 2,000 complex policies, each compiled, to 100 MB; a tenth of
// them is measured. What the caches hold of them is not counted.
func TestMemoryOfManyPolicies(t *testing.T) {
	const policies, limit = 200, 100 << 20 / 2000
	f := newFixture(t)
	for i := range policies {
		f.apply(realistic(i))
	}
	before := heapInUse()
	f.expect(deployment("d", "1", "registry/a"), "")
	grown := int64(heapInUse()) - int64(before)
	t.Logf("%d KB for each of %d policies", grown/policies>>10, policies)
	if grown/policies > limit {
		t.Errorf("%d bytes for each policy, more than %d", grown/policies, limit)
	}
}

// processorTime is what the process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// BenchmarkCreate creates a Deployment while so many policies are for it.
func BenchmarkCreate(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			f := newFixture(b)
			for i := range n {
				f.apply(realistic(i))
			}
			f.expect(deployment("warm", "1", "registry/a"), "")
			r, obj := f.decode(deployment("d", "1", "registry/a"))
			ctx := f.context()
			b.ReportAllocs()
			before := processorTime(b)
			defer func() { b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op") }()
			for i := 0; b.Loop(); i++ {
				created := obj.DeepCopyObject().(resource.Object)
				created.SetName(fmt.Sprintf("d-%d", i))
				if _, err := r.Create(ctx, "default", created, registry.WriteOptions{DryRun: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
