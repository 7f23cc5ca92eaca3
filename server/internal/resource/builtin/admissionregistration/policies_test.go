package admissionregistration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func podRules(operations ...admissionv1.OperationType) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}}}
}

func validatingPolicy() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "example.com"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: podRules("*"), Validations: []admissionv1.Validation{{Expression: "object.metadata.name != 'x'"}},
		},
	}
}

func mutatingPolicy() *admissionv1.MutatingAdmissionPolicy {
	return &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "example.com"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: podRules("CREATE"), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{
				Expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
			}}},
		},
	}
}

// checkErrors compares errors with the paths of fields, and what one of the messages has.
func checkErrors(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	if len(want) == 0 && len(errs) > 0 {
		t.Fatalf("errors: %v", errs)
	}
	for _, w := range want {
		path, detail, _ := strings.Cut(w, "|")
		found := false
		for _, err := range errs {
			found = found || err.Field == path && strings.Contains(err.Error(), detail)
		}
		if !found {
			t.Errorf("no error of %s that says %q, but %v", path, detail, errs)
		}
	}
}

func TestMistakesInValidatingPolicies(t *testing.T) {
	type policy = admissionv1.ValidatingAdmissionPolicy
	rules := validatingPolicyRules()
	long := strings.Repeat("a", maxAuditAnnotationExpression+1)
	for name, c := range map[string]struct {
		change func(p *policy)
		want   []string
	}{
		"none":           {func(*policy) {}, nil},
		"failure policy": {func(p *policy) { p.Spec.FailurePolicy = new(admissionv1.FailurePolicyType("Retry")) }, []string{`spec.failurePolicy|supported values: "Fail", "Ignore"`}},
		"empty enumerations": {func(p *policy) {
			p.Spec.FailurePolicy, p.Spec.MatchConstraints.MatchPolicy = new(admissionv1.FailurePolicyType), new(admissionv1.MatchPolicyType)
			p.Spec.MatchConstraints.ResourceRules[0].Scope = new(admissionv1.ScopeType)
		}, []string{"spec.failurePolicy|Unsupported", "spec.matchConstraints.matchPolicy|Unsupported", "spec.matchConstraints.resourceRules[0].scope|Unsupported"}},
		"no constraints":      {func(p *policy) { p.Spec.MatchConstraints = nil }, []string{"spec.matchConstraints|Required"}},
		"no rules":            {func(p *policy) { p.Spec.MatchConstraints.ResourceRules = nil }, []string{"spec.matchConstraints.resourceRules|Required"}},
		"match policy":        {func(p *policy) { p.Spec.MatchConstraints.MatchPolicy = new(admissionv1.MatchPolicyType("Some")) }, []string{"spec.matchConstraints.matchPolicy|Unsupported"}},
		"resource name twice": {func(p *policy) { p.Spec.MatchConstraints.ResourceRules[0].ResourceNames = []string{"a", "a"} }, []string{"spec.matchConstraints.resourceRules[0].resourceNames[1]|Duplicate"}},
		"resource name":       {func(p *policy) { p.Spec.MatchConstraints.ResourceRules[0].ResourceNames = []string{"a/b"} }, []string{"spec.matchConstraints.resourceRules[0].resourceNames[0]|may not contain '/'"}},
		"operation":           {func(p *policy) { p.Spec.MatchConstraints = podRules("READ") }, []string{"spec.matchConstraints.resourceRules[0].operations[0]|Unsupported"}},
		"nothing validated":   {func(p *policy) { p.Spec.Validations = nil }, []string{"spec.validations|at least one item", "spec.auditAnnotations|at least one item"}},
		"param kind":          {func(p *policy) { p.Spec.ParamKind = &admissionv1.ParamKind{} }, []string{"spec.paramKind.apiVersion|Required", "spec.paramKind.kind|Required"}},
		"param version":       {func(p *policy) { p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "a/b/c", Kind: "K"} }, []string{"spec.paramKind.apiVersion|unexpected GroupVersion"}},
		"param group":         {func(p *policy) { p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "A/", Kind: "K"} }, []string{"spec.paramKind.apiVersion|RFC 1123 subdomain", "spec.paramKind.apiVersion|version must be specified"}},
		"param kind's name":   {func(p *policy) { p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "No Kind"} }, []string{"spec.paramKind.kind|may have mixed case"}},
		"syntax":              {func(p *policy) { p.Spec.Validations[0].Expression = "object.x in 'x'" }, []string{"spec.validations[0].expression|compilation failed: ERROR: <input>:1:"}},
		"not a boolean":       {func(p *policy) { p.Spec.Validations[0].Expression = "'yes'" }, []string{"spec.validations[0].expression|must evaluate to bool"}},
		"no expression":       {func(p *policy) { p.Spec.Validations[0].Expression = "  " }, []string{"spec.validations[0].expression|expression is not specified"}},
		"params without kind": {func(p *policy) { p.Spec.Validations[0].Expression = "params.x == 1" }, []string{"spec.validations[0].expression|undeclared reference to 'params'"}},
		"params with kind": {func(p *policy) {
			p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
			p.Spec.Validations[0].Expression = "params.x == 1"
		}, nil},
		"unknown variable": {func(p *policy) { p.Spec.Validations[0].Expression = "variables.x == 1" }, []string{"spec.validations[0].expression|undefined field 'x'"}},
		"variable's type": {func(p *policy) {
			p.Spec.Variables = []admissionv1.Variable{{Name: "x", Expression: "'1'"}}
			p.Spec.Validations[0].Expression = "variables.x == 1"
		}, []string{"spec.validations[0].expression|no matching overload"}},
		"variable's name": {func(p *policy) {
			p.Spec.Variables = []admissionv1.Variable{{Name: "a-b", Expression: "1"}, {Expression: "1"}}
		}, []string{"spec.variables[0].name|must be a valid CEL identifier", "spec.variables[1].name|name is not specified"}},
		"reserved name": {func(p *policy) { p.Spec.Variables = []admissionv1.Variable{{Name: "in", Expression: "1"}} }, []string{"spec.variables[0].name|must be a valid CEL identifier"}},
		"variable before": {func(p *policy) {
			p.Spec.Variables = []admissionv1.Variable{{Name: "a", Expression: "variables.b"}, {Name: "b", Expression: "1"}}
		}, []string{"spec.variables[0].expression|undefined field 'b'"}},
		"use of no expression": {func(p *policy) {
			p.Spec.Variables = []admissionv1.Variable{{Name: "x", Expression: " "}}
			p.Spec.Validations[0].Expression = "variables.x == 1"
		}, []string{"spec.variables[0].expression|expression is not specified", "spec.validations[0].expression|undefined field 'x'"}},
		"variable's expression": {func(p *policy) { p.Spec.Variables = []admissionv1.Variable{{Name: "a"}} }, []string{"spec.variables[0].expression|expression is not specified"}},
		"message lines":         {func(p *policy) { p.Spec.Validations[0].Message = "a\nb" }, []string{"spec.validations[0].message|line breaks"}},
		"empty message":         {func(p *policy) { p.Spec.Validations[0].Message = " " }, []string{"spec.validations[0].message|must be non-empty"}},
		"message expression":    {func(p *policy) { p.Spec.Validations[0].MessageExpression = "1" }, []string{"spec.validations[0].messageExpression|must evaluate to string"}},
		"message asks": {func(p *policy) {
			p.Spec.Validations[0].MessageExpression = "authorizer.path('/').check('get').reason()"
		}, []string{"spec.validations[0].messageExpression|undeclared reference to 'authorizer'"}},
		"empty messageExpr": {func(p *policy) { p.Spec.Validations[0].MessageExpression = " " }, []string{"spec.validations[0].messageExpression|must be non-empty"}},
		"unauthorized":      {func(p *policy) { p.Spec.Validations[0].Reason = new(metav1.StatusReasonUnauthorized) }, []string{`spec.validations[0].reason|supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`}},
		"reason":            {func(p *policy) { p.Spec.Validations[0].Reason = new(metav1.StatusReasonGone) }, []string{"spec.validations[0].reason|Unsupported"}},
		"condition's name": {func(p *policy) {
			p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "no name", Expression: "true"}, {Expression: "true"}}
		}, []string{"spec.matchConditions[0].name|Invalid", "spec.matchConditions[1].name|Required"}},
		"condition twice": {func(p *policy) {
			p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "true"}, {Name: "a", Expression: "true"}}
		}, []string{"spec.matchConditions[1].name|Duplicate"}},
		"condition's expression": {func(p *policy) { p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: ""}} }, []string{"spec.matchConditions[0].expression|Required"}},
		"condition's variables": {func(p *policy) {
			p.Spec.Variables = []admissionv1.Variable{{Name: "a", Expression: "true"}}
			p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "variables.a"}}
		}, []string{"spec.matchConditions[0].expression|undefined field 'a'"}},
		"many conditions": {func(p *policy) { p.Spec.MatchConditions = make([]admissionv1.MatchCondition, 65) }, []string{"spec.matchConditions|must have at most 64 items"}},
		"annotation's key": {func(p *policy) {
			p.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "a b", ValueExpression: "'x'"}}
		}, []string{"spec.auditAnnotations[0].key|Invalid"}},
		"annotation's type": {func(p *policy) {
			p.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "a", ValueExpression: "1"}}
		}, []string{"spec.auditAnnotations[0].valueExpression|must evaluate to one of [string null"}},
		"annotation twice": {func(p *policy) {
			p.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "a", ValueExpression: "'x'"}, {Key: "a", ValueExpression: "null"}}
		}, []string{"spec.auditAnnotations[1].key|Duplicate"}},
		"annotation's length": {func(p *policy) {
			p.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "a", ValueExpression: "'" + long + "'"}}
		}, []string{"spec.auditAnnotations[0].valueExpression|must not exceed 5120 bytes"}},
		"many annotations": {func(p *policy) { p.Spec.AuditAnnotations = make([]admissionv1.AuditAnnotation, 21) }, []string{"spec.auditAnnotations|more than 20"}},
		"patch types":      {func(p *policy) { p.Spec.Validations[0].Expression = "Object{} == Object{}" }, []string{"spec.validations[0].expression|undeclared reference to 'Object'"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := validatingPolicy()
			rules.Default(p)
			c.change(p)
			checkErrors(t, append(rules.Validate(p), rules.ValidateCreate(p)...), c.want...)
		})
	}
}

func TestMistakesInMutatingPolicies(t *testing.T) {
	type policy = admissionv1.MutatingAdmissionPolicy
	rules := mutatingPolicyRules()
	patch := func(expression string) func(*policy) {
		return func(p *policy) {
			p.Spec.Mutations = []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: expression}}}
		}
	}
	for name, c := range map[string]struct {
		change func(p *policy)
		want   []string
	}{
		"none":           {func(*policy) {}, nil},
		"json patch":     {patch("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]"), nil},
		"no mutations":   {func(p *policy) { p.Spec.Mutations = nil }, []string{"spec.mutations|at least one item"}},
		"no type":        {func(p *policy) { p.Spec.Mutations[0].PatchType = "" }, []string{"spec.mutations[0].patchType|Required"}},
		"type":           {func(p *policy) { p.Spec.Mutations[0].PatchType = "Merge" }, []string{"spec.mutations[0].patchType|Unsupported"}},
		"the other type": {func(p *policy) { p.Spec.Mutations[0].PatchType = admissionv1.PatchTypeJSONPatch }, []string{"spec.mutations[0].jsonPatch|must be specified", "spec.mutations[0].applyConfiguration|must not be specified"}},
		"not an object":  {func(p *policy) { p.Spec.Mutations[0].ApplyConfiguration.Expression = "{'a': 1}" }, []string{"spec.mutations[0].applyConfiguration.expression|must evaluate to Object"}},
		"not a patch":    {patch("[1]"), []string{"spec.mutations[0].jsonPatch.expression|must evaluate to list(JSONPatch)"}},
		"patch member":   {patch("[JSONPatch{verb: 'add'}]"), []string{"spec.mutations[0].jsonPatch.expression|expected type of field 'verb'"}},
		"no expression":  {patch(""), []string{"spec.mutations[0].jsonPatch.expression|Required"}},
		"reinvocation":   {func(p *policy) { p.Spec.ReinvocationPolicy = "" }, []string{"spec.reinvocationPolicy|Required"}},
		"deletion":       {func(p *policy) { p.Spec.MatchConstraints = podRules("DELETE") }, []string{`spec.matchConstraints.resourceRules.operations|supported values: "*", "CONNECT", "CREATE", "UPDATE"`}},
		"no operation": {func(p *policy) { p.Spec.MatchConstraints = podRules("") }, []string{
			"spec.matchConstraints.resourceRules[0].operations[0]|Unsupported", "spec.matchConstraints.resourceRules.operations|Unsupported",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := mutatingPolicy()
			rules.Default(p)
			c.change(p)
			checkErrors(t, append(rules.Validate(p), rules.ValidateCreate(p)...), c.want...)
		})
	}
}

func TestMistakesInPolicyBindings(t *testing.T) {
	type binding = admissionv1.ValidatingAdmissionPolicyBinding
	rules := validatingPolicyBindingRules()
	deny := new(admissionv1.DenyAction)
	for name, c := range map[string]struct {
		change func(b *binding)
		want   []string
	}{
		"none":          {func(*binding) {}, nil},
		"no policy":     {func(b *binding) { b.Spec.PolicyName = "" }, []string{"spec.policyName|Required"}},
		"policy's name": {func(b *binding) { b.Spec.PolicyName = "A" }, []string{"spec.policyName|Invalid"}},
		"no actions":    {func(b *binding) { b.Spec.ValidationActions = nil }, []string{"spec.validationActions|Required"}},
		"action":        {func(b *binding) { b.Spec.ValidationActions = []admissionv1.ValidationAction{"Log"} }, []string{"spec.validationActions[0]|Unsupported"}},
		"action twice":  {func(b *binding) { b.Spec.ValidationActions = []admissionv1.ValidationAction{"Deny", "Deny"} }, []string{"spec.validationActions[1]|Duplicate"}},
		"deny and warn": {func(b *binding) { b.Spec.ValidationActions = []admissionv1.ValidationAction{"Deny", "Warn"} }, []string{"spec.validationActions|must not contain both"}},
		"no parameter":  {func(b *binding) { b.Spec.ParamRef = &admissionv1.ParamRef{ParameterNotFoundAction: deny} }, []string{"spec.paramRef|one of name or selector"}},
		"both": {func(b *binding) {
			b.Spec.ParamRef = &admissionv1.ParamRef{Name: "a", Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: deny}
		}, []string{"spec.paramRef.name|mutually exclusive", "spec.paramRef.selector|mutually exclusive"}},
		"parameter's name": {func(b *binding) { b.Spec.ParamRef = &admissionv1.ParamRef{Name: "..", ParameterNotFoundAction: deny} }, []string{"spec.paramRef.name|Invalid"}},
		"no action":        {func(b *binding) { b.Spec.ParamRef = &admissionv1.ParamRef{Name: "a"} }, []string{"spec.paramRef.parameterNotFoundAction|Required"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &binding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "a", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
			rules.Default(b)
			c.change(b)
			checkErrors(t, rules.ValidateCreate(b), c.want...)
		})
	}
}

// TestOrderOfMistakes: what is in the tags of a type comes behind everything else, and a version that is
// there twice is not looked at twice, as by kube-apiserver.
func TestOrderOfMistakes(t *testing.T) {
	check := func(errs field.ErrorList, want ...string) {
		t.Helper()
		var got []string
		for _, err := range errs {
			got = append(got, err.Field)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", errs, want)
		}
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "a" + staticSuffix}}
	binding.Spec.ParamRef = &admissionv1.ParamRef{Name: "a"}
	check(validatingPolicyBindingRules().ValidateCreate(binding), "spec.paramRef.parameterNotFoundAction", "metadata.name", "spec.policyName", "spec.validationActions")
	check(validatingPolicyBindingRules().ValidateUpdate(binding, binding), "spec.paramRef.parameterNotFoundAction", "spec.policyName", "spec.validationActions")
	check(validateReviewVersions(field.NewPath("v"), []string{"V1", "V1", "v1"}), "v[0]", "v[1]")
}

// A policy that is stored may keep an expression that a new one could not have.
func TestUnchangedExpressionsStay(t *testing.T) {
	old, changed := validatingPolicy(), validatingPolicy()
	changed.Labels = map[string]string{"a": "b"}
	if errs := validatingPolicyRules().ValidateUpdate(changed, old); len(errs) > 0 {
		t.Error(errs)
	}
	changed.Spec.Validations[0].Expression = "object."
	if errs := validatingPolicyRules().ValidateUpdate(changed, old); len(errs) == 0 {
		t.Error("a new expression is not checked")
	}
}

// TestPoliciesOfManyExpressions: what all expressions of an object cost the compiler is bounded, and the field says so.
func TestPoliciesOfManyExpressions(t *testing.T) {
	long := func(i int) string { return fmt.Sprintf("'%s' != '%d'", strings.Repeat("a", 10_000), i) }
	const more = "all may take"
	policy := validatingPolicy()
	for i := range 80 {
		policy.Spec.Validations = append(policy.Spec.Validations, admissionv1.Validation{Expression: long(i)})
	}
	check := validatingPolicyRules().ValidateCreate
	checkErrors(t, check(policy), "spec.validations[70].expression|"+more)
	policy.Spec.Validations = policy.Spec.Validations[:20]
	checkErrors(t, check(policy))
	for i := range 30 {
		policy.Spec.Variables = append(policy.Spec.Variables, admissionv1.Variable{Name: fmt.Sprint("v", i), Expression: long(1000 + i)})
	}
	checkErrors(t, check(policy), "spec.variables[29].expression|"+more, "spec.validations[0].expression|"+more)
	hooks := &admissionv1.ValidatingWebhookConfiguration{}
	for i := range 80 {
		hook := admissionv1.ValidatingWebhook{Name: fmt.Sprintf("h%d.example.com", i), MatchConditions: []admissionv1.MatchCondition{{Name: "c", Expression: long(2000 + i)}}}
		hooks.Webhooks = append(hooks.Webhooks, hook)
	}
	checkErrors(t, validatingWebhookRules().ValidateCreate(hooks), "webhooks[70].matchConditions[0].expression|"+more)
}

// TestTooManyStoredConditions: a webhook configuration with more match conditions than a new one may have, which another
// server has stored, can be made smaller, and gets no others.
func TestTooManyStoredConditions(t *testing.T) {
	made := 3000
	conditions := func() []admissionv1.MatchCondition { // none equals another: what is compiled already costs nothing
		made++
		return []admissionv1.MatchCondition{{Name: "c", Expression: fmt.Sprintf(" '%s' != '%d'", strings.Repeat("a", 10_000), made)}}
	}
	says := func(errs field.ErrorList) bool { return strings.Contains(errs.ToAggregate().Error(), "all may take") }
	for _, other := range []bool{false, true} {
		validating, mutating := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
		for i := range 80 {
			name := fmt.Sprintf("h%d.example.com", i)
			validating.Webhooks = append(validating.Webhooks, admissionv1.ValidatingWebhook{Name: name, MatchConditions: conditions()})
			mutating.Webhooks = append(mutating.Webhooks, admissionv1.MutatingWebhook{Name: name, MatchConditions: conditions()})
		}
		now, nowMutating := validating.DeepCopy(), mutating.DeepCopy()
		now.Webhooks, nowMutating.Webhooks = now.Webhooks[1:], nowMutating.Webhooks[1:]
		if other {
			now.Webhooks[78].MatchConditions, nowMutating.Webhooks[78].MatchConditions = conditions(), conditions()
		}
		if got := says(validatingWebhookRules().ValidateUpdate(now, validating)); got != other {
			t.Errorf("other conditions: %v; a validating configuration is refused: %v", other, got)
		}
		if got := says(mutatingWebhookRules().ValidateUpdate(nowMutating, mutating)); got != other {
			t.Errorf("other conditions: %v; a mutating configuration is refused: %v", other, got)
		}
	}
}
