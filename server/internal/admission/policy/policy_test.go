package policy

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// A policy decides about every write that begins after it was answered, and no longer when
// its deletion was.
func TestPoliciesActAtOnce(t *testing.T) {
	f := newFixture(t)
	for range 20 {
		f.expect(configMap("c", "", ""), "")
		f.apply(policyFor("p", "", "configmaps", "  validations: [{expression: 'false', message: never}]\n") + "\n---\n" + bindingFor("p", ""))
		f.expect(configMap("c", "", ""), "never")
		r, _ := f.set.Lookup("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
		_, err := r.Delete(f.context(), "", "p-binding", nil)
		must(t, err)
		f.expect(configMap("c", "", ""), "")
		r, _ = f.set.Lookup("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
		_, err = r.Delete(f.context(), "", "p", nil)
		must(t, err)
	}
}

// Requests for the kinds of admission itself are always possible.
func TestOwnKindsAreExempt(t *testing.T) {
	f := newFixture(t)
	f.apply(policyFor("p", "*", "'*'", "  validations: [{expression: 'false', message: never}]\n") + "\n---\n" + bindingFor("p", ""))
	f.expect(configMap("c", "", ""), "never")
	f.apply(policyFor("q", "*", "'*'", "  validations: [{expression: 'false'}]\n"))
}

// What a failed evaluation means is the policy's choice.
func TestFailurePolicy(t *testing.T) {
	f := newFixture(t)
	failing := "  validations: [{expression: object.data.missing == 'x'}]\n"
	f.apply(policyFor("fail", "", "configmaps", failing) + "\n---\n" + bindingFor("fail", "") + "\n---\n" +
		strings.Replace(policyFor("ignore", "", "secrets", failing), "failurePolicy: Fail", "failurePolicy: Ignore", 1) + "\n---\n" + bindingFor("ignore", ""))
	f.expect(configMap("c", "", "a: b"), "expression 'object.data.missing == 'x'' resulted in error: no such key: missing")
	f.expect("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: Yg==}", "")
	_, err := f.create(configMap("c", "", "a: b"))
	if status := err.(*apierrors.StatusError).ErrStatus; status.Code != 422 || status.Reason != "Invalid" || len(status.Details.Causes) != 1 {
		t.Errorf("status is %+v", status)
	}
}

// Parameters by selector: the policy is asked with each; none may be an error.
func TestParamsBySelector(t *testing.T) {
	f := newFixture(t)
	f.apply(policyFor("limits", "apps", "deployments", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n"+
		"  - {expression: 'object.spec.replicas <= int(params.data.max)', messageExpression: \"'at most ' + params.data.max + ' by ' + params.metadata.name\"}\n") + "\n---\n" +
		bindingFor("limits", "  paramRef: {selector: {matchLabels: {role: limit}}, parameterNotFoundAction: Deny}\n"))
	f.expect(deployment("d", "1", "a"), "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")
	f.apply(configMap("five", "role: limit", "max: '5'") + "\n---\n" + configMap("three", "role: limit", "max: '3'") + "\n---\n" + configMap("zero", "role: other", "max: '0'"))
	f.expect(deployment("d", "3", "a"), "")
	f.expect(deployment("d", "4", "a"), "denied request: at most 3 by three")
	f.expect(deployment("d", "6", "a"), "denied request: at most 5 by five")
}

// Mistakes that only a request shows.
func TestMisconfigured(t *testing.T) {
	for _, c := range []struct{ name, spec, binding, refusal string }{
		{"unknown kind", "  paramKind: {apiVersion: example.com/v1, kind: None}\n  validations: [{expression: 'true'}]\n", "  paramRef: {name: a, parameterNotFoundAction: Allow}\n", "failed to configure binding: failed to find resource referenced by paramKind: 'example.com/v1, Kind=None'"},
		{"cluster parameter in a namespace", "  paramKind: {apiVersion: v1, kind: Namespace}\n  validations: [{expression: 'true'}]\n", "  paramRef: {name: default, namespace: default, parameterNotFoundAction: Allow}\n", "paramRef.namespace must not be provided for a cluster-scoped"},
		{"missing and allowed", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'false'}]\n", "  paramRef: {name: none, parameterNotFoundAction: Allow}\n", ""},
		{"missing and denied", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'true'}]\n", "  paramRef: {name: none, parameterNotFoundAction: Deny}\n", "no params found for policy binding"},
		{"cluster parameter", "  paramKind: {apiVersion: v1, kind: Namespace}\n  validations: [{expression: \"params.metadata.labels.environment == 'prod'\", message: not prod}]\n", "  paramRef: {name: default, parameterNotFoundAction: Deny}\n", "not prod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.apply(policyFor("p", "apps", "deployments", c.spec) + "\n---\n" + bindingFor("p", c.binding))
			f.expect(deployment("d", "1", "a"), c.refusal)
		})
	}
}

// Expressions that cost too much are refused, each and all together. To look for a string
// of n bytes in another one is rated at n*n/100, and takes next to no time.
func TestCostLimits(t *testing.T) {
	const search = "  - {expression: 'object.data.long.contains(object.data.long)'}\n"
	withLong := func(bytes int) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {long: " + strings.Repeat("x", bytes) + "}\n"
	}
	f := newFixture(t)
	f.apply(policyFor("one", "", "configmaps", "  validations:\n"+search) + "\n---\n" + bindingFor("one", ""))
	f.expect(withLong(11_000), "actual cost limit exceeded")
	f.expect(withLong(9_000), "")
	f = newFixture(t)
	f.apply(policyFor("all", "", "configmaps", "  validations:\n"+strings.Repeat(search, 20)) + "\n---\n" + bindingFor("all", ""))
	f.expect(withLong(9_000), "validation failed due to running out of cost budget")
	f.expect(withLong(5_000), "")
}

// Objects reach a policy in the version that it names.
func TestEquivalentVersions(t *testing.T) {
	f := newFixture(t)
	f.apply(strings.Replace(policyFor("p", "autoscaling", "horizontalpodautoscalers", "  validations: [{expression: \"object.apiVersion == 'autoscaling/v2' && request.kind.version == 'v2' && request.requestKind.version == 'v1' && object.spec.metrics[0].resource.target.averageUtilization == 50\", message: another version}]\n"),
		"apiVersions: [v1]", "apiVersions: [v2]", 1) + "\n---\n" + bindingFor("p", ""))
	manifest := "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {maxReplicas: 3, targetCPUUtilizationPercentage: 50, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}\n"
	f.expect(manifest, "")
	f.expect(strings.Replace(manifest, "50", "60", 1), "another version")
	f.apply(mutatingFor("set", "autoscaling", "v2", "horizontalpodautoscalers", "Never", "ApplyConfiguration", "Object{spec: Object.spec{minReplicas: 2}}"))
	obj, err := f.create(manifest)
	must(t, err)
	r, _ := f.decode(manifest)
	shown, err := r.Get(t.Context(), "default", obj.GetName())
	must(t, err)
	if min := shown.(*autoscalingv1.HorizontalPodAutoscaler).Spec.MinReplicas; min == nil || *min != 2 {
		t.Errorf("minReplicas is %v", min)
	}
}

// mutatingFor is the manifests of a mutating policy with one expression, and its binding.
func mutatingFor(name, group, version, resources, reinvocation, patchType, expression string) string {
	key := strings.ToLower(patchType[:1]) + patchType[1:]
	if patchType == "JSONPatch" {
		key = "jsonPatch"
	}
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n  failurePolicy: Fail\n  reinvocationPolicy: " + reinvocation +
		"\n  matchConstraints: {resourceRules: [{apiGroups: ['" + group + "'], apiVersions: [" + version + "], operations: [CREATE, UPDATE], resources: [" + resources + "]}]}\n" +
		"  mutations:\n  - patchType: " + patchType + "\n    " + key + ":\n      expression: >\n        " + expression + "\n---\n" + mutatingBindingFor(name)
}

// Policies are applied in the order of their names, each to what the one before has left;
// one that wants to is asked again.
func TestOrderAndReinvocation(t *testing.T) {
	count := func(name string) string {
		return "Object{metadata: Object.metadata{annotations: {'order': (has(object.metadata.annotations) && 'order' in object.metadata.annotations ? object.metadata.annotations['order'] : '') + '" + name + "'}}}"
	}
	f := newFixture(t)
	f.apply(mutatingFor("c", "", "v1", "configmaps", "Never", "ApplyConfiguration", count("c")) + "\n---\n" +
		mutatingFor("a", "", "v1", "configmaps", "IfNeeded", "ApplyConfiguration", count("a")) + "\n---\n" +
		mutatingFor("b", "", "v1", "configmaps", "Never", "ApplyConfiguration", count("b")))
	obj, err := f.create(configMap("m", "", "a: b"))
	must(t, err)
	if got := obj.GetAnnotations()["order"]; got != "abca" {
		t.Errorf("the order was %q", got)
	}
}

func TestMutations(t *testing.T) {
	for _, c := range []struct {
		name, patchType, expression, manifest, refusal string
		check                                          func(obj resource.Object) bool
	}{
		{
			"label", "ApplyConfiguration", "Object{metadata: Object.metadata{labels: {'team': request.userInfo.username}}}", configMap("c", "a: b", "x: v"), "",
			func(o resource.Object) bool { return o.GetLabels()["team"] == "alice" && o.GetLabels()["a"] == "b" },
		},
		{
			"escaped label", "JSONPatch", "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/env'), value: 'test'}]", configMap("c", "a: b", "x: v"), "",
			func(o resource.Object) bool { return o.GetLabels()["example.com/env"] == "test" },
		},
		{
			"failed test changes nothing", "JSONPatch", "[JSONPatch{op: 'test', path: '/data/x', value: 'z'}, JSONPatch{op: 'replace', path: '/data/x', value: 'w'}]", configMap("c", "", "x: v"), "",
			func(o resource.Object) bool { return o.(*corev1.ConfigMap).Data["x"] == "v" },
		},
		{
			"succeeded test", "JSONPatch", "[JSONPatch{op: 'test', path: '/data/x', value: 'v'}, JSONPatch{op: 'copy', from: '/data/x', path: '/data/z'}, JSONPatch{op: 'remove', path: '/data/x'}]", configMap("c", "", "x: v"), "",
			func(o resource.Object) bool {
				return o.(*corev1.ConfigMap).Data["z"] == "v" && len(o.(*corev1.ConfigMap).Data) == 1
			},
		},
		{"no such path", "JSONPatch", "[JSONPatch{op: 'remove', path: '/data/none'}]", configMap("c", "", "x: v"), "policy 'p' with binding 'p-binding' denied request: JSON Patch:", nil},
		{
			"large patch", "JSONPatch", "object.data.x.split('').map(c, JSONPatch{op: 'add', path: '/data/y', value: object.data.x})",
			configMap("c", "", "x: "+strings.Repeat("v", 4000)), "the operations of the JSON patch have more than", nil,
		},
		{
			"many operations", "JSONPatch", "object.data.x.split('').map(c, JSONPatch{op: 'test', path: '/data/x', value: c})",
			configMap("c", "", "x: "+strings.Repeat("v", 10_500)), "maximum operations in a JSON patch", nil,
		},
		{"test of everything", "JSONPatch", "[JSONPatch{op: 'test', path: ''}]", configMap("c", "", "x: v"), "the mutation cannot be applied", nil},
		{
			"under a null", "JSONPatch", "[JSONPatch{op: 'add', path: '/metadata/annotations', value: null}, JSONPatch{op: 'add', path: '/metadata/annotations/x', value: 'y'}]",
			configMap("c", "", "x: v"), "the mutation cannot be applied", nil,
		},
		{"unknown field", "JSONPatch", "[JSONPatch{op: 'add', path: '/spec', value: 1}]", configMap("c", "", "x: v"), `unknown field "spec"`, nil},
		{"wrong type name", "ApplyConfiguration", "Object{metadata: Object.spec{}}", configMap("c", "", "x: v"), "type mismatch: unexpected type name", nil},
		{"unknown field of a merge", "ApplyConfiguration", "Object{spec: Object.spec{}}", configMap("c", "", "x: v"), "failed to convert patch object to typed object: .spec: field not declared in schema", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.apply(mutatingFor("p", "", "v1", "configmaps", "Never", c.patchType, c.expression))
			obj, err := f.create(c.manifest)
			switch {
			case c.refusal != "":
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("error is %v", err)
				}
			case err != nil:
				t.Error(err)
			case !c.check(obj):
				t.Errorf("the object is %+v", obj)
			}
		})
	}
}

// A list that is replaced as a whole may not be part of an apply configuration, as for
// server-side apply by a policy that cannot know what else is in it.
func TestAtomicListsAreRefused(t *testing.T) {
	f := newFixture(t)
	f.apply(mutatingFor("p", "apps", "v1", "deployments", "Never", "ApplyConfiguration", "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"))
	_, err := f.create(deployment("d", "1", "a"))
	if err == nil || !strings.Contains(err.Error(), "may not mutate atomic arrays, maps or structs: .spec.selector") {
		t.Error(err)
	}
}

// What a policy makes of an object is defaulted and validated like what a client sends.
func TestMutatedObjectsAreValidated(t *testing.T) {
	f := newFixture(t)
	f.apply(mutatingFor("p", "apps", "v1", "deployments", "Never", "ApplyConfiguration", "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'side', image: object.metadata.labels['app']}]}}}}"))
	obj, err := f.create(deployment("d", "1", "a"))
	must(t, err)
	if c := obj.(*appsv1.Deployment).Spec.Template.Spec.Containers; len(c) != 2 || c[1].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("containers are %+v", c)
	}
	f.apply(mutatingFor("q", "", "v1", "configmaps", "Never", "JSONPatch", "[JSONPatch{op: 'add', path: '/data/a~1b', value: 'x'}]"))
	if _, err := f.create(configMap("c", "", "x: v")); err == nil || !strings.Contains(err.Error(), "is invalid: data[a/b]") {
		t.Error(err)
	}
}

// An update shows the old object; a deletion only that.
func TestUpdatesAndDeletions(t *testing.T) {
	f := newFixture(t)
	f.apply(strings.Replace(policyFor("p", "", "configmaps", "  validations:\n  - {expression: \"request.operation != 'UPDATE' || object.data.a == oldObject.data.a\", message: a stays}\n"+
		"  - {expression: \"request.operation != 'DELETE' || object == null && oldObject.data.a != 'keep' && request.options.kind == 'DeleteOptions'\", message: kept}\n"), "[CREATE, UPDATE]", "[UPDATE, DELETE]", 1) + "\n---\n" + bindingFor("p", ""))
	f.apply(configMap("c", "", "a: keep"))
	r, obj := f.decode(configMap("c", "", "a: other"))
	_, err := r.Update(f.context(), "default", "c", func(resource.Object) (resource.Object, error) { return obj, nil }, registry.UpdateOptions{Unconditional: true})
	if err == nil || !strings.Contains(err.Error(), "a stays") {
		t.Error(err)
	}
	if _, err := r.Delete(f.context(), "default", "c", nil); err == nil || !strings.Contains(err.Error(), "kept") {
		t.Error(err)
	}
}

// An answer of the authorizer is asked for once in a request.
func TestAuthorizerIsAskedOnce(t *testing.T) {
	f := newFixture(t)
	check := "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"
	f.apply(policyFor("p", "", "configmaps", "  validations:\n  - expression: \"!"+check+"\"\n  - expression: \"!"+check+"\"\n") + "\n---\n" + bindingFor("p", ""))
	if f.expect(configMap("c", "", ""), ""); f.asked != 1 {
		t.Errorf("asked %d times", f.asked)
	}
}

// While Run runs, a bound policy is compiled before a request needs it.
func TestPoliciesAreCompiledAhead(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.policies.Run(ctx)
	}()
	f.apply(policyFor("p", "", "configmaps", "  validations: [{expression: 'true'}]\n") + "\n---\n" + bindingFor("p", ""))
	testwait.Stable(t, "the policy is compiled", func() (any, bool) {
		must(t, f.policies.catchUp(ctx))
		hooks := f.policies.validating.current().hooks
		return len(hooks), len(hooks) == 1 && hooks[0].policy.compiled.Load() != nil
	})
	cancel()
	<-done
}
