package policy

import "testing"

// TestLibraryPolicies has controls of the kind that published policy libraries have
// (github.com/kubescape/cel-admission-library and others), in our words, with the verdicts
// that such a library documents.
func TestLibraryPolicies(t *testing.T) {
	const containers = "  variables:\n  - name: containers\n    expression: \"object.kind == 'Pod' ? object.spec.containers : object.kind in ['Deployment', 'Job'] ? object.spec.template.spec.containers : []\"\n"
	for _, c := range []struct{ name, policy, allowed, refused string }{
		{
			"privileged containers", containers + "  validations: [{expression: 'variables.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)', message: refused}]\n",
			"{containers: [{name: a, image: a, securityContext: {privileged: false}}]}", "{containers: [{name: a, image: a, securityContext: {privileged: true}}]}",
		},
		{
			"host namespaces", "  validations: [{expression: \"object.kind != 'Pod' || !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false) && !object.spec.?hostNetwork.orValue(false)\", message: refused}]\n",
			"{containers: [{name: a, image: a}]}", "{hostPID: true, containers: [{name: a, image: a}]}",
		},
		{
			"memory limits", containers + "  validations: [{expression: \"variables.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits && quantity(c.resources.limits.memory).compareTo(quantity('1Gi')) <= 0)\", message: refused}]\n",
			"{containers: [{name: a, image: a, resources: {limits: {memory: 512Mi}}}]}", "{containers: [{name: a, image: a, resources: {limits: {memory: 2Gi}}}]}",
		},
		{
			"capabilities", containers + "  validations: [{expression: \"variables.containers.all(c, c.?securityContext.capabilities.add.orValue([]).all(a, !(a in ['SYS_ADMIN', 'NET_RAW', 'ALL'])))\", message: refused}]\n",
			"{containers: [{name: a, image: a, securityContext: {capabilities: {add: [CHOWN]}}}]}", "{containers: [{name: a, image: a, securityContext: {capabilities: {add: [CHOWN, SYS_ADMIN]}}}]}",
		},
		{
			"paths of the host", "  validations: [{expression: \"object.spec.?volumes.orValue([]).all(v, !has(v.hostPath) || v.hostPath.path.startsWith('/var/log/'))\", message: refused}]\n",
			"{volumes: [{name: v, hostPath: {path: /var/log/x}}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, hostPath: {path: /var/run/docker.sock}}], containers: [{name: a, image: a}]}",
		},
		{
			"latest images", containers + "  validations: [{expression: \"variables.containers.all(c, c.image.matches('.+(:[^/]+|@sha256:[0-9a-f]{64})$') && !c.image.endsWith(':latest'))\", message: refused}]\n",
			"{containers: [{name: a, image: 'registry/a:v1'}]}", "{containers: [{name: a, image: 'registry/a:latest'}]}",
		},
		{
			"environment from secrets", containers + "  validations: [{expression: \"variables.containers.all(c, !has(c.env) || c.env.all(e, !has(e.valueFrom) || !has(e.valueFrom.secretKeyRef)))\", message: refused}]\n",
			"{containers: [{name: a, image: a, env: [{name: A, value: b}]}]}", "{containers: [{name: a, image: a, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}",
		},
		{
			"duplicate variables", containers + "  validations: [{expression: \"variables.containers.all(c, !has(c.env) || c.env.all(e, c.env.exists_one(o, o.name == e.name)))\", message: refused}]\n",
			"{containers: [{name: a, image: a, env: [{name: A, value: b}, {name: B, value: b}]}]}", "{containers: [{name: a, image: a, env: [{name: A, value: b}, {name: A, value: c}]}]}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.apply(policyFor("control", "", "pods", c.policy) + "\n---\n" + bindingFor("control", ""))
			f.expect(pod("p", c.allowed), "")
			f.expect(pod("p", c.refused), `pods "p" is forbidden: ValidatingAdmissionPolicy 'control' with binding 'control-binding' denied request: refused`)
		})
	}
}
