package resourcequota

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/internal/quota"
	"github.com/levelwire/levelwire/server/internal/configfile"
)

// Limited is what may be consumed only where a quota covers it, by resource
// (https://kubernetes.io/docs/concepts/policy/resource-quotas/#limit-priority-class-consumption-by-default).
type Limited map[schema.GroupResource][]LimitedResource

// LimitedResource is an element of limitedResources in the configuration of the plugin.
type LimitedResource struct {
	APIGroup string `json:"apiGroup"`
	Resource string `json:"resource"`
	// MatchContains are parts of the names of amounts that a quota must limit.
	MatchContains []string `json:"matchContains"`
	// MatchScopes select objects for which there must be a quota with a scope of the same name.
	MatchScopes []corev1.ScopedResourceSelectorRequirement `json:"matchScopes"`
}

// ParseConfig reads the configuration of the plugin.
func ParseConfig(data []byte) (Limited, error) {
	current := configfile.CheckKind(data, "ResourceQuotaConfiguration", "apiserver.config.k8s.io/v1")
	if current != nil && configfile.CheckKind(data, "Configuration", "resourcequota.admission.k8s.io/v1beta1", "resourcequota.admission.k8s.io/v1alpha1") != nil {
		return nil, current
	}
	var read struct {
		metav1.TypeMeta  `json:",inline"`
		LimitedResources []LimitedResource `json:"limitedResources"`
	}
	if err := yaml.UnmarshalStrict(data, &read); err != nil {
		return nil, err
	}
	limited := Limited{}
	for i, l := range read.LimitedResources {
		if l.Resource == "" {
			return nil, fmt.Errorf("limitedResources[%d]: resource is required, such as pods", i)
		}
		of := schema.GroupResource{Group: l.APIGroup, Resource: l.Resource}
		if _, ok := quota.For(of); !ok {
			return nil, fmt.Errorf("limitedResources[%d]: quotas do not limit %s", i, of)
		}
		limited[of] = append(limited[of], l)
	}
	return limited, nil
}

// covered refuses a claim on what is limited unless the quotas that matter to it cover it.
func (c *claim) covered(quotas, matching []*corev1.ResourceQuota, usage corev1.ResourceList) error {
	if len(c.limited) == 0 {
		return nil
	}
	var uncovered []corev1.ResourceName
	for name := range usage {
		limits := func(q *corev1.ResourceQuota) bool { _, ok := q.Status.Hard[name]; return ok }
		if c.isLimited(name) && !slices.ContainsFunc(matching, limits) {
			uncovered = append(uncovered, name)
		}
	}
	if len(uncovered) > 0 {
		slices.Sort(uncovered)
		return c.forbid("insufficient quota to consume: %s", quota.FormatNames(uncovered))
	}
	var scopes []string
	for _, l := range c.limited {
		for _, scope := range l.MatchScopes {
			if c.inScope(scope) && !c.hasScope(quotas, scope.ScopeName) {
				scopes = append(scopes, fmt.Sprintf("%s %s %v", scope.ScopeName, scope.Operator, scope.Values))
			}
		}
	}
	if len(scopes) > 0 {
		return c.forbid("%w", errors.New("insufficient quota to match these scopes: "+strings.Join(scopes, ", ")))
	}
	return nil
}

func (c *claim) isLimited(name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.limited, func(l LimitedResource) bool {
		return slices.ContainsFunc(l.MatchContains, func(part string) bool { return strings.Contains(string(name), part) })
	})
}

func (c *claim) inScope(scope corev1.ScopedResourceSelectorRequirement) bool {
	return c.evaluator.InScopes(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{
		ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{scope}},
	}}, c.object)
}

// hasScope reports whether one of the quotas selects the object by a scope of this name.
func (c *claim) hasScope(quotas []*corev1.ResourceQuota, name corev1.ResourceQuotaScope) bool {
	return slices.ContainsFunc(quotas, func(q *corev1.ResourceQuota) bool {
		if slices.Contains(q.Spec.Scopes, name) && c.inScope(corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists}) {
			return true
		}
		return q.Spec.ScopeSelector != nil && slices.ContainsFunc(q.Spec.ScopeSelector.MatchExpressions, func(s corev1.ScopedResourceSelectorRequirement) bool {
			return s.ScopeName == name && c.inScope(s)
		})
	})
}
