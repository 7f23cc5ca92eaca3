package builtin_test

import (
	"slices"
	"strings"
	"testing"
)

const policyHead = "{apiVersion: admissionregistration.k8s.io/v1, metadata: {name: %}, kind: "

// TestReservedNames: no API manages a configuration whose name is one of files.
func TestReservedNames(t *testing.T) {
	rules := "rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]"
	match := "{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}"
	hooks := "webhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a.example.com'}, " + rules + "}]}"
	for _, text := range []string{
		"ValidatingWebhookConfiguration, " + hooks, "MutatingWebhookConfiguration, " + hooks,
		"ValidatingAdmissionPolicy, spec: {matchConstraints: " + match + ", validations: [{expression: 'true'}]}}",
		"ValidatingAdmissionPolicyBinding, spec: {policyName: a, validationActions: [Deny]}}",
		"MutatingAdmissionPolicy, spec: {matchConstraints: " + match + ", reinvocationPolicy: Never, " +
			"mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{}'}}]}}",
		"MutatingAdmissionPolicyBinding, spec: {policyName: a}}",
	} {
		r, obj := prepared(t, strings.Replace(policyHead, "%", "a.example.com", 1)+text)
		if errs := validateNew(r, obj); len(errs) > 0 {
			t.Errorf("%s: %v", r.Kind, errs)
		}
		obj.SetName("a.static.k8s.io")
		want := `metadata.name: Invalid value: "a.static.k8s.io": names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API`
		if errs := validateNew(r, obj); len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("%s: %v, want %s", r.Kind, errs, want)
		}
	}
}

// TestRulesAboutReviews have no effect, and a warning says so.
func TestRulesAboutReviews(t *testing.T) {
	r, obj := prepared(t, strings.Replace(policyHead, "%", "a", 1)+"ValidatingWebhookConfiguration, webhooks: [{rules: ["+
		"{apiGroups: ['*'], resources: [tokenreviews]}, {apiGroups: [authentication.k8s.io], resources: [tokenreviews, tokenreviews, pods]}]}]}")
	want := []string{"webhooks[0].rules[1]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule will have no effect"}
	if got := r.Strategy.Warnings(obj, nil); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPolicyStatuses: what is said of expressions names them, and conditions are complete.
func TestPolicyStatuses(t *testing.T) {
	const policy = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, status: "
	checkStatuses(t, map[string][]string{
		policy + "{typeChecking: {expressionWarnings: [{fieldRef: spec.a, warning: w}, {fieldRef: ' '}, {fieldRef: '{', warning: w}]}, conditions: [{}]}}": {
			"Required status.typeChecking.expressionWarnings[1].warning", "Required status.typeChecking.expressionWarnings[1].fieldRef",
			"Invalid status.typeChecking.expressionWarnings[2].fieldRef",
			"Required status.conditions[0].type", "Required status.conditions[0].status", "Required status.conditions[0].lastTransitionTime", "Required status.conditions[0].reason",
		},
	})
}

// TestRulesOfWebhooks: resources with stars and subresources, of which one takes in others, are refused
// only where kube-apiserver refuses them; published configurations have the others.
func TestRulesOfWebhooks(t *testing.T) {
	const rule = "webhooks.0.rules.0."
	for change, want := range map[string]string{
		rule + "resources=['*', pods/exec]":      "",
		rule + "resources=['*', 'pods/*']":       "",
		rule + "resources=['*', '*/scale']":      "",
		rule + "resources=['*', pods]":           "resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources",
		rule + "resources=['*/*', pods]":         "resources: Invalid value: [\"*/*\",\"pods\"]: if '*/*' is present, must not specify other resources",
		rule + "resources=['pods/*', pods/exec]": "resources[1]: Invalid value: \"pods/exec\": if 'pods/*' is present, must not specify pods/exec",
		rule + "resources=['*/exec', pods/exec]": "resources[1]: Invalid value: \"pods/exec\": if '*/exec' is present, must not specify pods/exec",
		rule + "resources=['']":                  "resources[0]: Required value",
		rule + "operations=['*', CREATE]":        "operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
		rule + "apiVersions=['']":                "apiVersions[0]: Required value",
	} {
		r, obj := manifest(t, "webhook", change)
		got := ""
		for _, err := range validateNew(r, obj) {
			got += strings.TrimPrefix(err.Error(), "webhooks[0].rules[0].")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", change, got, want)
		}
	}
}
