package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// describe lists rules as Kubernetes writes them in refusals, in order and each once.
// The rules are of one verb and one resource or path each, and those of a resource are
// put together.
func describe(rules []rbacv1.PolicyRule) []string {
	type subject struct {
		group, resource, name string
		named                 bool
	}
	together := map[subject]*rbacv1.PolicyRule{}
	var lines []string
	for _, rule := range rules {
		if len(rule.APIGroups) != 1 || len(rule.Resources) != 1 || len(rule.ResourceNames) > 1 || len(rule.NonResourceURLs) > 0 {
			lines = append(lines, ruleText(&rule))
			continue
		}
		of := subject{group: rule.APIGroups[0], resource: rule.Resources[0]}
		if len(rule.ResourceNames) > 0 {
			of.name, of.named = rule.ResourceNames[0], true
		}
		if known := together[of]; known != nil {
			known.Verbs = append(known.Verbs, rule.Verbs...)
		} else {
			together[of] = rule.DeepCopy()
		}
	}
	for _, rule := range together {
		lines = append(lines, ruleText(rule))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func ruleText(rule *rbacv1.PolicyRule) string {
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", rule.APIGroups}, {"Resources", rule.Resources}, {"NonResourceURLs", rule.NonResourceURLs},
		{"ResourceNames", rule.ResourceNames}, {"Verbs", rule.Verbs},
	} {
		if len(part.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", part.name, part.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
