package audit

import (
	"k8s.io/apimachinery/pkg/util/sets"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// rules are those of a policy. The library that decides by them compares each group of a user with each that a rule
// names: here they are looked up, since a user may have thousands, and a policy may name as many.
type rules struct {
	list      []rule
	otherwise audit.RequestAuditConfig // of requests that no rule matches
}

// rule is one of them.
type rule struct {
	groups  sets.Set[string]          // of which a user must have one; empty: of any user
	matches audit.PolicyRuleEvaluator // the rest of it: it has the level matched for what it matches
	config  audit.RequestAuditConfig
}

// matched is the level of all rules that the library is given: LevelNone is its answer for what no rule matches.
const matched = auditinternal.LevelMetadata

func newRules(of *auditinternal.Policy) *rules {
	_ = policy.NewPolicyRuleEvaluator(of) // which completes the rules
	nothing := policy.NewPolicyRuleEvaluator(&auditinternal.Policy{OmitStages: of.OmitStages, OmitManagedFields: of.OmitManagedFields})
	r := &rules{otherwise: nothing.EvaluatePolicyRule(attributes{})}
	for _, spec := range of.Rules {
		made := rule{groups: sets.New(spec.UserGroups...), config: audit.RequestAuditConfig{
			Level: spec.Level, OmitStages: spec.OmitStages, OmitManagedFields: of.OmitManagedFields,
		}}
		if spec.OmitManagedFields != nil {
			made.config.OmitManagedFields = *spec.OmitManagedFields
		}
		spec.Level, spec.UserGroups = matched, nil
		made.matches = policy.NewPolicyRuleEvaluator(&auditinternal.Policy{Rules: []auditinternal.PolicyRule{spec}})
		r.list = append(r.list, made)
	}
	return r
}

// configFor returns what is audited of a request: what the first rule that matches says.
func (r *rules) configFor(of auth.Attributes) audit.RequestAuditConfig {
	groups := userGroups{list: of.User.Groups}
	for i := range r.list {
		rule := &r.list[i]
		if rule.groups.Len() > 0 && (of.User.Name == "" || !groups.haveOneOf(rule.groups)) {
			continue
		}
		if rule.matches.EvaluatePolicyRule(attributes{of}).Level == matched {
			return rule.config
		}
	}
	return r.otherwise
}

// userGroups are the groups of a user. The set of them is made if a rule names fewer than there are.
type userGroups struct {
	list []string
	set  sets.Set[string]
}

// haveOneOf looks up the fewer ones in the others.
func (g *userGroups) haveOneOf(wanted sets.Set[string]) bool {
	if len(g.list) <= wanted.Len() {
		return wanted.HasAny(g.list...)
	}
	if g.set == nil {
		g.set = sets.New(g.list...)
	}
	for group := range wanted {
		if g.set.Has(group) {
			return true
		}
	}
	return false
}
