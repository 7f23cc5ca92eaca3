package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// staticSuffix ends the names of configurations that a kube-apiserver reads from files.
const staticSuffix = ".static.k8s.io"

// validateNewName refuses a new object with a name that is reserved for configurations in files.
func validateNewName(name string) field.ErrorList {
	if !strings.HasSuffix(name, staticSuffix) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
		fmt.Sprintf("names ending with %q are reserved for static manifest-based configurations and cannot be managed via the API", staticSuffix))}
}

// unasked are the resources about which no webhook is asked, so that no mistake in one ends all logins.
var unasked = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

// unaskedWarnings are about rules of the webhook at index that name such a resource. What a wildcard
// means to match is not known.
func unaskedWarnings(index int, rules []admissionv1.RuleWithOperations) []string {
	var warnings []string
	for i, rule := range rules {
		if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "*") {
			continue
		}
		var said []schema.GroupResource
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				named := schema.GroupResource{Group: group, Resource: name}
				if !slices.Contains(unasked, named) || slices.Contains(said, named) {
					continue
				}
				said = append(said, named)
				at := field.NewPath("webhooks").Index(index).Child("rules").Index(i)
				warnings = append(warnings, fmt.Sprintf("%s: %s is excluded from admission webhooks; this rule will have no effect", at, named))
			}
		}
	}
	return warnings
}
