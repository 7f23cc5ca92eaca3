package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/client"
)

// post sends an object and returns what the server answers.
func post(ctx context.Context, t *testing.T, c *client.Client, path, body string) (code int, text string, header http.Header) {
	t.Helper()
	answer, err := c.Raw(ctx, client.RawRequest{
		Method: http.MethodPost, Path: path, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content), answer.Header
}

func mustPost(ctx context.Context, t *testing.T, c *client.Client, path, body string) (text string, header http.Header) {
	t.Helper()
	code, text, header := post(ctx, t, c, path, body)
	if code != http.StatusCreated {
		t.Fatalf("%s: %d %s", path, code, text)
	}
	return text, header
}

const (
	registrations = "/apis/admissionregistration.k8s.io/v1/"
	limitsPath    = "/apis/example.com/v1/namespaces/default/limits"
)

// TestPoliciesOverTheWire has what needs a whole server: parameters and matched objects that
// are custom resources, the authorizers, warnings, type checking, metrics.
func TestPoliciesOverTheWire(t *testing.T) {
	admin, jane := withRBAC(t)
	ctx := deadline(t)
	mustPost(ctx, t, admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "limits.example.com",
		`"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"limits","singular":"limit","kind":"Limit","listKind":"LimitList"},`+
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"max":{"type":"integer"},"note":{"type":"string"}}}}}]}`))
	for {
		if code, text, _ := post(ctx, t, admin, limitsPath, object("example.com/v1", "Limit", "three", `"max":3`)); code == http.StatusCreated {
			break
		} else if code != http.StatusNotFound {
			t.Fatal(code, text)
		}
	}
	rules := func(group, resource string) string {
		return `"failurePolicy":"Fail","matchConstraints":{"resourceRules":[{"apiGroups":["` + group + `"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["` + resource + `"]}]}`
	}
	binding := func(kind, policy, rest string) string {
		return object("admissionregistration.k8s.io/v1", kind+"AdmissionPolicyBinding", policy, `"spec":{"policyName":"`+policy+`"`+rest+`}`)
	}
	// A parameter that is a custom resource, and a field that there is not.
	mustPost(ctx, t, admin, registrations+"validatingadmissionpolicies", object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "limited",
		`"spec":{`+rules("apps", "deployments")+`,"paramKind":{"apiVersion":"example.com/v1","kind":"Limit"},`+
			`"validations":[{"expression":"object.spec.replicas <= params.max","messageExpression":"'at most ' + string(params.max)"},{"expression":"!has(params.least) || params.least < 1"}]}`))
	mustPost(ctx, t, admin, registrations+"validatingadmissionpolicybindings", binding("Validating", "limited",
		`,"validationActions":["Deny"],"paramRef":{"name":"three","parameterNotFoundAction":"Deny"}`))
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	deployment := func(replicas string) string {
		return object("apps/v1", "Deployment", "d", `"spec":{"replicas":`+replicas+`,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`)
	}
	if code, text, _ := post(ctx, t, admin, deployments, deployment("4")); code != http.StatusUnprocessableEntity || !strings.Contains(text, `deployments.apps \"d\" is forbidden: ValidatingAdmissionPolicy 'limited' with binding 'limited' denied request: at most 3`) {
		t.Errorf("%d %s", code, text)
	}
	mustPost(ctx, t, admin, deployments, deployment("3"))

	// Custom resources are changed and checked; the roles decide what the authorizer says.
	mustPost(ctx, t, admin, registrations+"mutatingadmissionpolicies", object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "noted",
		`"spec":{`+rules("example.com", "limits")+`,"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{note: 'by ' + request.userInfo.username}"}}]}`))
	mustPost(ctx, t, admin, registrations+"mutatingadmissionpolicybindings", binding("Mutating", "noted", ""))
	mustPost(ctx, t, admin, registrations+"validatingadmissionpolicies", object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "asked",
		`"spec":{`+rules("example.com", "limits")+`,"validations":[{"expression":"authorizer.group('').resource('secrets').namespace('default').check('get').allowed()","message":"who may not read secrets sets no limits"}]}`))
	mustPost(ctx, t, admin, registrations+"validatingadmissionpolicybindings", binding("Validating", "asked", `,"validationActions":["Warn"]`))
	for _, path := range []string{"/apis/rbac.authorization.k8s.io/v1/clusterroles"} {
		mustPost(ctx, t, admin, path, object("rbac.authorization.k8s.io/v1", "ClusterRole", "limits", `"rules":[{"apiGroups":["example.com"],"resources":["limits"],"verbs":["*"]}]`))
	}
	mustPost(ctx, t, admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "limits",
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"limits"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]`))
	text, header := mustPost(ctx, t, jane, limitsPath, object("example.com/v1", "Limit", "janes", `"max":1`))
	if !strings.Contains(text, `"note":"by jane"`) || !strings.Contains(header.Get("Warning"), "who may not read secrets sets no limits") {
		t.Errorf("jane's limit: %s, warning %q", text, header.Get("Warning"))
	}
	if _, header := mustPost(ctx, t, admin, limitsPath, object("example.com/v1", "Limit", "admins", `"max":1`)); header.Get("Warning") != "" {
		t.Errorf("the administrator is warned: %q", header.Get("Warning"))
	}

	for {
		got := body(ctx, t, admin, registrations+"validatingadmissionpolicies/limited")
		if strings.Contains(got, `"observedGeneration":1`) {
			if !strings.Contains(got, `"fieldRef":"spec.validations[1].expression"`) || !strings.Contains(got, "undefined field 'least'") {
				t.Errorf("status: %s", got)
			}
			break
		}
	}
	metrics := body(ctx, t, admin, "/metrics")
	for _, want := range []string{
		`apiserver_validating_admission_policy_check_total{enforcement_action="deny",error_type="invalid_error",policy="limited",policy_binding="limited"} 1`,
		`apiserver_validating_admission_policy_check_total{enforcement_action="warn",error_type="invalid_error",policy="asked",policy_binding="asked"} 1`,
		`apiserver_mutating_admission_policy_check_duration_seconds_count{error_type="no_error",policy="noted",policy_binding="noted"} 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
}

// body returns what a path answers.
func body(ctx context.Context, t *testing.T, c *client.Client, path string) string {
	t.Helper()
	answer, err := c.Raw(ctx, client.RawRequest{Method: http.MethodGet, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
