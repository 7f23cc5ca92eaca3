package cel

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/testwait"
)

// policy is the expressions of a policy as policy libraries have them, with constants of
// its own, so that nothing is shared.
func policyExpressions(i int) (variables [][2]string, expressions []string) {
	return [][2]string{
			{"containers", "object.spec.template.spec.containers + (has(object.spec.template.spec.initContainers) ? object.spec.template.spec.initContainers : [])"},
			{"allowed", fmt.Sprintf("['registry-%d.example.com/', 'mirror-%d.example.com/', 'quay.io/team-%d/']", i, i, i)},
			{"bad", "variables.containers.filter(c, !variables.allowed.exists(p, c.image.startsWith(p)))"},
			{"exempt", fmt.Sprintf("has(object.metadata.labels) && 'exempt-%d' in object.metadata.labels && object.metadata.labels['exempt-%d'] == 'true'", i, i)},
		}, []string{
			fmt.Sprintf("request.userInfo.username != 'system:serviceaccount:team-%d:deployer'", i),
			"variables.exempt || variables.bad.size() == 0",
			fmt.Sprintf("variables.exempt || variables.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits && quantity(c.resources.limits['memory']).isLessThan(quantity('%dMi')))", 100+i),
			fmt.Sprintf("variables.exempt || object.spec.replicas <= %d || authorizer.group('apps').resource('deployments').namespace(object.metadata.namespace).check('scale').allowed()", i),
			fmt.Sprintf("variables.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || c.securityContext.privileged == false || c.name.matches('^trusted-%d-.*$'))", i),
			fmt.Sprintf("'images of team %d must come from ' + variables.allowed.join(', ') + ', not: ' + variables.bad.map(c, c.image).join(', ')", i),
		}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func compilePolicies(tb testing.TB, from, to int) (kept []any) {
	tb.Helper()
	declarations := Declarations{Authorizer: true}
	for i := from; i < to; i++ {
		compiler := NewCompiler(Stored)
		variables, expressions := policyExpressions(i)
		for _, v := range variables {
			if err := compiler.Declare(v[0], v[1], declarations); err != nil {
				tb.Fatal(err)
			}
		}
		kept = append(kept, compiler.Variables())
		for _, expression := range expressions {
			program, err := compiler.Compile(expression, declarations)
			if err != nil {
				tb.Fatal(err)
			}
			kept = append(kept, program)
		}
	}
	return kept
}

// TestMemoryOfManyPolicies compiles policies that share next to nothing. Ten expressions of
// a policy may cost 50 KB, so that 2,000 such policies stay in 100 MB.
func TestMemoryOfManyPolicies(t *testing.T) {
	const policies, perPolicy = 200, 50_000
	kept := compilePolicies(t, 0, 1)
	before, began := heap(), time.Now()
	kept = append(kept, compilePolicies(t, 1, policies+1)...)
	took := time.Since(began)
	grown := (int64(heap()) - int64(before)) / policies // what others have left may go meanwhile
	t.Logf("%d bytes and %v for each policy of 10 expressions", grown, took/policies)
	if grown > perPolicy {
		t.Errorf("a policy takes %d bytes, more than %d", grown, perPolicy)
	}
	runtime.KeepAlive(kept)
}

// Programs that no policy holds any more are forgotten.
func TestProgramsAreForgotten(t *testing.T) {
	kept := compilePolicies(t, 10_000, 10_010)
	runtime.KeepAlive(kept)
	count := func() int {
		compiling.Lock()
		defer compiling.Unlock()
		return len(programs)
	}
	before := count()
	testwait.Stable(t, fmt.Sprintf("half of %d Programs at most stay", before), func() (any, bool) {
		runtime.GC()
		n := count()
		return n, n <= before/2
	})
}
