package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// A policy shows parameters in its messages: an author who may not read Secrets may not
// take them as parameters.
func TestAuthorsMayReadParams(t *testing.T) {
	f := newFixture(t)
	f.set.Admit(AuthorizeParams(f.set, f))
	policy := policyFor("reader", "", "configmaps", "  paramKind: {apiVersion: v1, kind: Secret}\n  validations: [{expression: 'false', messageExpression: 'string(params.data.password)'}]\n")
	binding := bindingFor("reader", "  paramRef: {name: token, namespace: kube-system, parameterNotFoundAction: Deny}\n")
	f.expect(policy, `must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)`)
	f.expect(binding, `does not have "get" permission on the object referenced by paramRef`)
	f.expect(strings.Replace(strings.ReplaceAll(binding, "Validating", "Mutating"), "  validationActions: [Deny]\n", "", 1), `does not have "get" permission`)
	f.allowed["get secrets"] = true
	f.apply(policy + "\n---\n" + binding)
}

// The rules of a policy can name more combinations than can be looked at.
func TestTypesToCheckEnds(t *testing.T) {
	f := newFixture(t)
	names := make([]string, 20_000)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	match := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Rule: admissionv1.Rule{APIGroups: names, APIVersions: names, Resources: names},
	}}}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.policies.typesToCheck(match)
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Fatal("the kinds of a policy are looked for without end")
	}
}

// What is wrong with expressions must not make a policy larger than the store takes.
func TestWarningsAreBounded(t *testing.T) {
	f := newFixture(t)
	wrong := "true" + strings.Repeat(" && object.nothing", 400)
	_, obj := f.decode(policyFor("wrong", "apps", "deployments", "  validations:\n"+strings.Repeat("  - {expression: '"+wrong+"'}\n", 20)))
	size := 0
	for _, w := range f.policies.warningsOf(obj.(*admissionv1.ValidatingAdmissionPolicy)) {
		size += len(w.Warning)
	}
	if size == 0 || size > maxWarningBytes {
		t.Errorf("%d bytes of warnings", size)
	}
}

// TestTypesOfManyKinds: the types of a policy cost the compiler what the policy may, and not ten times as much for ten kinds.
func TestTypesOfManyKinds(t *testing.T) {
	f := newFixture(t)
	const last = "  - {expression: 'object.nothing == 1'}\n"
	warned := func(validations string) int {
		_, obj := f.decode(policyFor("many", "apps", "deployments", "  validations:\n"+validations+last))
		policy := obj.(*admissionv1.ValidatingAdmissionPolicy)
		rule := &policy.Spec.MatchConstraints.ResourceRules[0].Rule
		rule.APIGroups, rule.APIVersions, rule.Resources = []string{"", "apps", "batch"}, []string{"v1"}, []string{
			"deployments", "replicasets", "daemonsets", "statefulsets", "jobs", "cronjobs", "pods", "services", "secrets", "configmaps",
		}
		kinds := 0
		for _, w := range f.policies.warningsOf(policy) {
			kinds += strings.Count(w.Warning, "undefined field 'nothing'")
		}
		return kinds
	}
	if got := warned(""); got != 10 {
		t.Errorf("a small policy is checked for %d kinds", got)
	}
	long := fmt.Sprintf("  - {expression: '\"%s\" != \"\"'}\n", strings.Repeat("a", 10_000))
	if got := warned(strings.Repeat(long, 20)); got != 0 {
		t.Errorf("after 200 expressions of 10 kB a policy is checked for %d kinds more", got)
	}
}
