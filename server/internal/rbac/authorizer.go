package rbac

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Authorize implements auth.Authorizer: a request is allowed if a rule of a role
// allows it that is bound to the user, to one of its groups or to the service account
// that it is, everywhere or in the request's namespace. RBAC denies nothing: where no
// rule allows, it has no opinion.
//
// A decision follows every write of roles and bindings that this server has
// acknowledged. It blocks, until ctx ends, only while the caches are filled for the
// first time or are behind such a write.
func (x *Index) Authorize(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if err := x.catchUp(ctx); err != nil {
		return auth.NoOpinion, "", err
	}
	var later unasked
	by, allowed, errs := x.decideQuickly(&a, &later)
	if !allowed && len(later.roles) > 0 {
		var err error
		if by, allowed, err = later.ask(ctx, &a, x.prepared.room); err != nil {
			return auth.NoOpinion, "", err
		}
	}
	if allowed {
		return auth.Allow, by.reason(), nil
	}
	if len(errs) > 0 {
		return auth.NoOpinion, fmt.Sprintf("RBAC: %v", utilerrors.NewAggregate(errs)), nil
	}
	return auth.NoOpinion, "", nil
}

// decideQuickly leaves the roles that take long to be asked without the lock: changes wait for it, and other decisions
// for them.
func (x *Index) decideQuickly(a *auth.Attributes, later *unasked) (by grant, allowed bool, errs []error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.policy.decideQuickly(a, later)
}

// OnChange implements auth.ChangeNotifier. Changes are reported soon after the caches
// show them while Run runs, and otherwise when the next decision is made.
func (x *Index) OnChange(changed func(user string)) (stop func()) { return x.changes.OnChange(changed) }

// Rules implements auth.RuleLister.
func (x *Index) Rules(ctx context.Context, user auth.User, namespace string) auth.Rules {
	rules, err := x.PolicyRules(ctx, user, namespace)
	var list auth.Rules
	for i := range rules {
		rule := &rules[i]
		if len(rule.Resources) > 0 {
			list.Resources = append(list.Resources, auth.ResourceRule{
				Verbs: rule.Verbs, Groups: rule.APIGroups, Resources: rule.Resources, Names: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			list.NonResources = append(list.NonResources, auth.NonResourceRule{Verbs: rule.Verbs, Paths: rule.NonResourceURLs})
		}
	}
	if err != nil {
		list.Problem = err.Error()
	}
	return list
}

// PolicyRules returns the rules of all roles that a user has, at the cluster scope and
// in the namespace, if it is not empty. An error says that there may be more; the rules
// are valid nevertheless. They are shared and must not be modified.
func (x *Index) PolicyRules(ctx context.Context, user auth.User, namespace string) ([]rbacv1.PolicyRule, error) {
	if err := x.catchUp(ctx); err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	rules, errs := rulesOf(x.policy.of(&user, nil), namespace)
	return rules, utilerrors.NewAggregate(errs)
}

// RoleRules returns the rules of the role that a binding refers to: in its namespace,
// or "" for a ClusterRoleBinding. The error is a NotFound if there is no such role. The
// rules are shared and must not be modified.
func (x *Index) RoleRules(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if err := x.catchUp(ctx); err != nil {
		return nil, err
	}
	key := objectKey{name: ref.Name}
	switch ref.Kind {
	case "Role":
		key.namespace = namespace
	case "ClusterRole":
	default:
		return nil, fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if r := x.policy.roles[key]; r != nil && r.compiled != nil {
		return r.rules, nil
	}
	return nil, (&role{key: key}).err()
}
