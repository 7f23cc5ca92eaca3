package policy

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

const invalidDeployment = `deployments.apps "d" is forbidden: ValidatingAdmissionPolicy `

// TestDocumentedValidatingPolicies has the policies of
// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ in
// our words, with the verdicts that it says they have.
func TestDocumentedValidatingPolicies(t *testing.T) {
	type request struct{ manifest, refusal string }
	for _, c := range []struct {
		name, setup string
		allowed     []string
		requests    []request
	}{
		{
			name: "getting started: replicas in a namespace of an environment",
			setup: policyFor("demo-policy.example.com", "apps", "deployments", "  validations:\n  - expression: object.spec.replicas <= 5\n") + "\n---\n" +
				bindingFor("demo-policy.example.com", "  matchResources: {namespaceSelector: {matchLabels: {environment: test}}}\n") +
				"\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: prod, labels: {environment: production}}",
			requests: []request{
				{deployment("d", "3", "a"), ""}, {deployment("d", "5", "a"), ""},
				{deployment("d", "6", "a"), invalidDeployment + `'demo-policy.example.com' with binding 'demo-policy.example.com-binding' denied request: failed expression: object.spec.replicas <= 5`},
				{strings.Replace(deployment("d", "6", "a"), "name: d,", "name: d, namespace: prod,", 1), ""},
			},
		},
		{
			name: "parameters: a limit that another object has",
			setup: policyFor("replicalimit", "apps", "deployments", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n"+
				"  - {expression: 'object.spec.replicas <= int(params.data.maxReplicas)', reason: Invalid, messageExpression: '\"replicas must be no greater than \" + params.data.maxReplicas'}\n") +
				"\n---\n" + bindingFor("replicalimit", "  paramRef: {name: limit, namespace: default, parameterNotFoundAction: Deny}\n") + "\n---\n" + configMap("limit", "", "maxReplicas: '3'"),
			requests: []request{{deployment("d", "3", "a"), ""}, {deployment("d", "4", "a"), "denied request: replicas must be no greater than 3"}},
		},
		{
			name: "optional parameters",
			setup: policyFor("optional", "apps", "deployments", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n"+
				"  - expression: \"params == null || object.spec.replicas <= int(params.data.maxReplicas)\"\n") + "\n---\n" + bindingFor("optional", ""),
			requests: []request{{deployment("d", "9", "a"), ""}},
		},
		{
			name:    "match conditions: leases and kubelets are exempt, and who may break glass",
			allowed: []string{"breakglass validatingadmissionpolicies"},
			setup: policyFor("conditions", "*", "'*'", "  matchConditions:\n  - {name: exclude-leases, expression: '!(request.resource.group == \"coordination.k8s.io\" && request.resource.resource == \"leases\")'}\n"+
				"  - {name: exclude-kubelet-requests, expression: '!(\"system:nodes\" in request.userInfo.groups)'}\n"+
				"  - {name: rbac, expression: 'request.resource.group != \"rbac.authorization.k8s.io\"'}\n"+
				"  - {name: breakglass, expression: '!authorizer.group(\"admissionregistration.k8s.io\").resource(\"validatingadmissionpolicies\").name(\"conditions\").check(\"breakglass\").allowed()'}\n"+
				"  validations:\n  - expression: '!object.metadata.name.contains(\"demo\") || object.metadata.namespace == \"demo\"'\n") + "\n---\n" + bindingFor("conditions", ""),
			requests: []request{{configMap("demo", "", ""), ""}},
		},
		{
			name: "match conditions: no user may break glass",
			setup: policyFor("conditions", "*", "'*'", "  matchConditions:\n  - {name: exclude-leases, expression: '!(request.resource.group == \"coordination.k8s.io\" && request.resource.resource == \"leases\")'}\n"+
				"  - {name: breakglass, expression: '!authorizer.group(\"admissionregistration.k8s.io\").resource(\"validatingadmissionpolicies\").name(\"conditions\").check(\"breakglass\").allowed()'}\n"+
				"  validations:\n  - expression: '!object.metadata.name.contains(\"demo\") || object.metadata.namespace == \"demo\"'\n") + "\n---\n" + bindingFor("conditions", ""),
			requests: []request{
				{configMap("demo", "", ""), `configmaps "demo" is forbidden`}, {configMap("other", "", ""), ""},
				{"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: demo}", ""},
			},
		},
		{
			name: "variables: images are those of the namespace's environment",
			setup: policyFor("image-matches-namespace-environment.policy.example.com", "apps", "deployments", "  variables:\n"+
				"  - {name: environment, expression: \"'environment' in namespaceObject.metadata.labels ? namespaceObject.metadata.labels['environment'] : 'prod'\"}\n"+
				"  - {name: exempt, expression: \"'exempt' in object.metadata.labels && object.metadata.labels['exempt'] == 'true'\"}\n"+
				"  - {name: containers, expression: object.spec.template.spec.containers}\n"+
				"  - {name: containersToCheck, expression: \"variables.containers.filter(c, c.image.contains('example.com/'))\"}\n"+
				"  validations:\n  - {expression: \"variables.exempt || variables.containersToCheck.all(c, c.image.startsWith(variables.environment + '.'))\", messageExpression: \"'only ' + variables.environment + ' images are allowed in namespace ' + namespaceObject.metadata.name\"}\n") +
				"\n---\n" + bindingFor("image-matches-namespace-environment.policy.example.com", ""),
			requests: []request{
				{deployment("d", "1", "test.example.com/web"), ""}, {deployment("d", "1", "nginx"), ""},
				{deployment("d", "1", "prod.example.com/web"), "denied request: only test images are allowed in namespace default"},
				{strings.Replace(deployment("d", "1", "prod.example.com/web"), "{app: web}", "{app: web, exempt: 'true'}", 1), ""},
			},
		},
		{
			name: "a rule of several lines and a reason",
			setup: policyFor("reason", "", "configmaps", "  validations:\n  - {expression: 'has(object.data)', reason: Forbidden, message: 'there must be data'}\n") +
				"\n---\n" + bindingFor("reason", ""),
			requests: []request{{configMap("c", "", "a: b"), ""}, {configMap("c", "", ""), `configmaps "c" is forbidden: ValidatingAdmissionPolicy 'reason' with binding 'reason-binding' denied request: there must be data`}},
		},
		{
			name:    "authorizer checks: who may change labels",
			allowed: []string{"alice update configmaps"},
			setup: policyFor("authorizer", "", "configmaps", "  validations:\n  - expression: \"authorizer.requestResource.check('update').allowed()\"\n"+
				"  - expression: \"authorizer.group('').resource('configmaps').subresource('').namespace('default').name('c').check('update').reason() == 'because'\"\n"+
				"  - expression: \"authorizer.serviceAccount('default', 'builder').group('').resource('secrets').check('get').allowed() == false\"\n"+
				"  - expression: \"authorizer.path('/healthz').check('get').allowed()\"\n    message: nobody may ask for health\n") +
				"\n---\n" + bindingFor("authorizer", ""),
			requests: []request{{configMap("c", "", ""), "denied request: nobody may ask for health"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			for _, a := range c.allowed {
				f.allowed[a] = true
			}
			f.apply(c.setup)
			for _, r := range c.requests {
				f.expect(r.manifest, r.refusal)
			}
		})
	}
}

// The audit annotations, warnings and failures of the documentation.
func TestActions(t *testing.T) {
	f := newFixture(t)
	f.apply(policyFor("demo", "apps", "deployments", "  validations:\n  - expression: object.spec.replicas <= 50\n  auditAnnotations:\n"+
		"  - {key: high-replica-count, valueExpression: \"object.spec.replicas > 50 ? 'Deployment spec.replicas set to ' + string(object.spec.replicas) : ''\"}\n") + "\n---\n" +
		strings.Replace(bindingFor("demo", ""), "[Deny]", "[Warn, Audit]", 1))
	if _, err := f.create(deployment("d", "128", "a")); err != nil {
		t.Fatal(err)
	}
	if want := "Validation failed for ValidatingAdmissionPolicy 'demo' with binding 'demo-binding': failed expression: object.spec.replicas <= 50"; len(f.answer.warnings) != 1 || f.answer.warnings[0] != want {
		t.Errorf("warnings are %q", f.answer.warnings)
	}
	for key, want := range map[string]string{
		"demo/high-replica-count":                               "Deployment spec.replicas set to 128",
		"validation.policy.admission.k8s.io/validation_failure": `[{"message":"failed expression: object.spec.replicas \u003c= 50","policy":"demo","binding":"demo-binding","expressionIndex":0,"validationActions":["Warn","Audit"]}]`,
	} {
		if got := f.answer.annotations[key]; got != want {
			t.Errorf("annotation %s is %q", key, got)
		}
	}
	if _, err := f.create(deployment("e", "1", "a")); err != nil || len(f.answer.annotations)+len(f.answer.warnings) > 0 {
		t.Errorf("error %v, %v", err, f.answer)
	}
}

// TestDocumentedMutatingPolicies has the policies of
// https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/.
func TestDocumentedMutatingPolicies(t *testing.T) {
	head := "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: sidecar}\nspec:\n  failurePolicy: Fail\n  reinvocationPolicy: IfNeeded\n" +
		"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n" +
		"  matchConditions:\n  - {name: does-not-already-have-sidecar, expression: \"!object.spec.?initContainers.orValue([]).exists(c, c.name == 'mesh-proxy')\"}\n"
	for name, mutation := range map[string]string{
		"apply configuration": "  mutations:\n  - patchType: ApplyConfiguration\n    applyConfiguration:\n      expression: >\n        Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'mesh-proxy',\n" +
			"          image: 'mesh/proxy:v1.0.0', restartPolicy: 'Always'}]}}\n",
		"json patch": "  mutations:\n  - patchType: JSONPatch\n    jsonPatch:\n      expression: >\n        has(object.spec.initContainers) ?\n        [JSONPatch{op: 'add', path: '/spec/initContainers/-',\n" +
			"          value: Object.spec.initContainers{name: 'mesh-proxy', image: 'mesh/proxy:v1.0.0', restartPolicy: 'Always'}}] :\n        [JSONPatch{op: 'add', path: '/spec/initContainers',\n" +
			"          value: [Object.spec.initContainers{name: 'mesh-proxy', image: 'mesh/proxy:v1.0.0', restartPolicy: 'Always'}]}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.apply(head + mutation + "\n---\n" + mutatingBindingFor("sidecar"))
			for _, spec := range []string{"{containers: [{name: a, image: a}]}", "{initContainers: [{name: first, image: b}], containers: [{name: a, image: a}]}"} {
				obj, err := f.create(pod("p", spec))
				must(t, err)
				got := obj.(*corev1.Pod).Spec.InitContainers
				want := 1 + strings.Count(spec, "first")
				if len(got) != want || got[want-1].Name != "mesh-proxy" || got[want-1].Image != "mesh/proxy:v1.0.0" || got[want-1].TerminationMessagePath == "" {
					t.Errorf("init containers are %+v", got)
				}
				r, _ := f.decode(pod("p", ""))
				_, err = r.Delete(t.Context(), "default", "p", nil)
				must(t, err)
			}
		})
	}
}

// The documentation's example of type checking.
func TestTypeChecking(t *testing.T) {
	f := newFixture(t)
	f.apply(policyFor("deploy-replica-policy.example.com", "apps", "deployments", "  variables:\n  - {name: template, expression: object.spec.template}\n"+
		"  validations:\n  - expression: object.replicas > 1\n    message: must be replicated\n    reason: Invalid\n"+
		"  - expression: object.spec.replicas > 1 && variables.template.spec.containers.all(c, c.name != '')\n"+
		"  - expression: object.spec.strategy.rollingUpdate.maxSurge != '100%' && object.metadata.labels['a'] == 'b'\n    messageExpression: \"'a' + object.spec.nothing\"\n"))
	must(t, f.policies.catchUp(f.context()))
	must(t, f.policies.checkTypes(t.Context(), "deploy-replica-policy.example.com"))
	r, _ := f.set.Lookup(admissionv1.GroupName, "v1", "validatingadmissionpolicies")
	stored, err := r.GetFromStore(t.Context(), "", "deploy-replica-policy.example.com")
	must(t, err)
	p := stored.(*admissionv1.ValidatingAdmissionPolicy)
	if p.Status.ObservedGeneration != p.Generation || p.Status.TypeChecking == nil {
		t.Fatalf("status is %+v", p.Status)
	}
	warnings := p.Status.TypeChecking.ExpressionWarnings
	if len(warnings) != 2 || warnings[0].FieldRef != "spec.validations[0].expression" || warnings[1].FieldRef != "spec.validations[2].messageExpression" {
		t.Fatalf("warnings are %+v", warnings)
	}
	if want := "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^"; !strings.Contains(warnings[0].Warning, want) {
		t.Errorf("warning is %s", warnings[0].Warning)
	}
}
