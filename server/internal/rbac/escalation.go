package rbac

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// The verbs that lift the restriction on what a user may grant.
const (
	verbEscalate = "escalate"
	verbBind     = "bind"
)

// PreventEscalation returns the hook that lets users grant by roles and bindings only
// what they may do themselves, as Kubernetes documents it
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping):
// a role may be written by users who have all its rules, or may escalate it; a binding,
// by those who have all rules of the role, or may bind it. authorizer decides about these
// two verbs. The group system:masters may grant everything.
func (x *Index) PreventEscalation(authorizer auth.Authorizer) registry.Admission {
	check := escalation{index: x, authorizer: authorizer}
	return check.admit
}

type escalation struct {
	index      *Index
	authorizer auth.Authorizer
}

func (e escalation) admit(ctx context.Context, q *registry.Request) error {
	if q.Object == nil || q.Resource.Group != rbacv1.GroupName {
		return nil
	}
	user, ok := auth.UserFrom(ctx)
	if !ok || user.In(auth.Masters) || q.Old != nil && grantsTheSame(q.Object, q.Old) {
		return nil
	}
	switch obj := q.Object.(type) {
	case *rbacv1.ClusterRole:
		old, _ := q.Old.(*rbacv1.ClusterRole)
		return e.checkRole(ctx, user, q, obj.Rules, isAggregated(obj) || isAggregated(old))
	case *rbacv1.Role:
		return e.checkRole(ctx, user, q, obj.Rules, false)
	case *rbacv1.ClusterRoleBinding:
		return e.checkBinding(ctx, user, q, obj.RoleRef)
	case *rbacv1.RoleBinding:
		return e.checkBinding(ctx, user, q, obj.RoleRef)
	}
	return nil
}

func isAggregated(role *rbacv1.ClusterRole) bool {
	return role != nil && role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) > 0
}

// grantsTheSame reports whether a write changes only what garbage collection does:
// owners and finalizers.
func grantsTheSame(obj, old resource.Object) bool {
	if !equality.Semantic.DeepEqual(obj.GetLabels(), old.GetLabels()) || !equality.Semantic.DeepEqual(obj.GetAnnotations(), old.GetAnnotations()) {
		return false
	}
	switch obj := obj.(type) {
	case *rbacv1.ClusterRole:
		old, ok := old.(*rbacv1.ClusterRole)
		return ok && equality.Semantic.DeepEqual(obj.Rules, old.Rules) && equality.Semantic.DeepEqual(obj.AggregationRule, old.AggregationRule)
	case *rbacv1.Role:
		old, ok := old.(*rbacv1.Role)
		return ok && equality.Semantic.DeepEqual(obj.Rules, old.Rules)
	case *rbacv1.ClusterRoleBinding:
		old, ok := old.(*rbacv1.ClusterRoleBinding)
		return ok && obj.RoleRef == old.RoleRef && equality.Semantic.DeepEqual(obj.Subjects, old.Subjects)
	case *rbacv1.RoleBinding:
		old, ok := old.(*rbacv1.RoleBinding)
		return ok && obj.RoleRef == old.RoleRef && equality.Semantic.DeepEqual(obj.Subjects, old.Subjects)
	}
	return false
}

// everything are the rules that an aggregated role may come to have.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func (e escalation) checkRole(ctx context.Context, user auth.User, q *registry.Request, rules []rbacv1.PolicyRule, aggregated bool) error {
	asked := auth.Attributes{
		User: user, Verb: verbEscalate, Group: rbacv1.GroupName, Version: "*", Resource: q.Resource.Plural, Namespace: q.Namespace,
	}
	if q.Old != nil {
		asked.Name = q.Name // a new object has no name yet, for rules that name some
	}
	if e.allowed(ctx, asked) {
		return nil
	}
	resource := q.Resource.GroupResource()
	if err := e.checkRules(ctx, user, q.Namespace, rules); err != nil {
		return forbidden(resource, q, err)
	}
	if aggregated && e.checkRules(ctx, user, q.Namespace, everything) != nil {
		return forbidden(resource, q, errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

func (e escalation) checkBinding(ctx context.Context, user auth.User, q *registry.Request, ref rbacv1.RoleRef) error {
	asked := auth.Attributes{User: user, Verb: verbBind, Group: ref.APIGroup, Version: "*", Namespace: q.Namespace, Name: ref.Name}
	switch ref.Kind {
	case "ClusterRole":
		asked.Resource = "clusterroles"
	case "Role":
		asked.Resource = "roles"
	default:
		return nil // validation refuses it
	}
	if e.allowed(ctx, asked) {
		return nil
	}
	rules, err := e.index.RoleRules(ctx, ref, q.Namespace)
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(rbacv1.Resource(asked.Resource), ref.Name)
	}
	if err != nil {
		return err
	}
	if err := e.checkRules(ctx, user, q.Namespace, rules); err != nil {
		return forbidden(q.Resource.GroupResource(), q, err)
	}
	return nil
}

func (e escalation) allowed(ctx context.Context, asked auth.Attributes) bool {
	decision, _, _ := e.authorizer.Authorize(ctx, asked) // an error allows nothing
	return decision == auth.Allow
}

// checkRules returns which of the rules the user does not have.
func (e escalation) checkRules(ctx context.Context, user auth.User, namespace string, rules []rbacv1.PolicyRule) error {
	has, unresolved := e.index.PolicyRules(ctx, user, namespace)
	missing, err := uncovered(has, rules)
	if err != nil || len(missing) == 0 {
		return err
	}
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		user.Name, user.Groups, strings.Join(describe(missing), "\n"))
	if unresolved != nil {
		message += fmt.Sprintf("; resolution errors: %v", []error{unresolved})
	}
	return errors.New(message)
}

func forbidden(resource schema.GroupResource, q *registry.Request, err error) error {
	return apierrors.NewForbidden(resource, q.Object.GetName(), err)
}
