package defaults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// writers bounds how many objects are written at the same time: those of a first start
// then become durable together.
const writers = 64

// Ensure creates what is missing of the default roles and bindings, and adds to those
// that exist the rules and subjects that they lack. It removes nothing that was added to
// them, and leaves an object alone whose annotation
// rbac.authorization.kubernetes.io/autoupdate is "false". The namespaces of the
// namespaced ones must exist. Several servers may call it at once.
//
// Where it has created all roles that aggregated ones select, as in a new cluster, it
// creates these with their rules. Otherwise the aggregation adds the rules: what an
// administrator has taken out of a role must not be granted for a moment.
func Ensure(ctx context.Context, set *registry.Set) error {
	wanted := tables()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := ensureAll(ctx, set, wanted.others)
		return err
	})
	group.Go(func() error {
		created, err := ensureAll(ctx, set, wanted.parts)
		if err != nil {
			return err
		}
		aggregated := wanted.aggregated
		if created < len(wanted.parts) {
			aggregated = wanted.withoutRules
		}
		_, err = ensureAll(ctx, set, aggregated)
		return err
	})
	return group.Wait()
}

// ensureAll returns how many of the objects it has created.
func ensureAll(ctx context.Context, set *registry.Set, objects []resource.Object) (int, error) {
	var next, created atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	// A store that does not block keeps few of the writers busy, which then have no stacks
	// to grow.
	for range min(writers, len(objects)) {
		group.Go(func() error {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return nil
				}
				made, err := ensure(ctx, set, objects[i])
				if err != nil {
					return fmt.Errorf("default role or binding %s: %w", objects[i].GetName(), err)
				}
				if made {
					created.Add(1)
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return int(created.Load()), err
}

// attempts is how often an object is compared that comes and goes meanwhile.
const attempts = 4

// ensure reports whether it has created the object. It does not modify wanted.
func ensure(ctx context.Context, set *registry.Set, wanted resource.Object) (created bool, err error) {
	r, err := registryOf(set, wanted)
	if err != nil {
		return false, err
	}
	for range attempts {
		replaced := false
		var result *registry.Result
		result, err = r.Update(ctx, wanted.GetNamespace(), wanted.GetName(), func(current resource.Object) (resource.Object, error) {
			if current == nil {
				return wanted.DeepCopyObject().(resource.Object), nil
			}
			if current.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] == "false" {
				return current, nil
			}
			replaced = otherRole(current, wanted)
			if replaced {
				return current, nil
			}
			return reconciled(current, wanted.DeepCopyObject().(resource.Object)), nil
		}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, MayCreate: true, Unconditional: true})
		if err == nil && replaced {
			// A binding cannot be given another role.
			_, err = r.DeleteAdmitted(ctx, wanted.GetNamespace(), wanted.GetName(), &metav1.DeleteOptions{})
			if err == nil || apierrors.IsNotFound(err) {
				continue
			}
		}
		if !apierrors.IsAlreadyExists(err) {
			return err == nil && result.Created, err
		}
	}
	return false, err
}

func registryOf(set *registry.Set, obj resource.Object) (registry.Registry, error) {
	plural := ""
	switch obj.(type) {
	case *rbacv1.ClusterRole:
		plural = "clusterroles"
	case *rbacv1.Role:
		plural = "roles"
	case *rbacv1.ClusterRoleBinding:
		plural = "clusterrolebindings"
	case *rbacv1.RoleBinding:
		plural = "rolebindings"
	}
	r, ok := set.Lookup(rbacv1.GroupName, "v1", plural)
	if !ok {
		return r, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: plural}, obj.GetName())
	}
	return r, nil
}

// otherRole reports whether a binding gives another role than it should.
func otherRole(current, wanted resource.Object) bool {
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRoleBinding:
		return current.(*rbacv1.ClusterRoleBinding).RoleRef != wanted.RoleRef
	case *rbacv1.RoleBinding:
		return current.(*rbacv1.RoleBinding).RoleRef != wanted.RoleRef
	}
	return false
}

// reconciled returns the object with what it lacks.
func reconciled(current, wanted resource.Object) resource.Object {
	obj := current.DeepCopyObject().(resource.Object)
	obj.SetLabels(withDefaults(obj.GetLabels(), wanted.GetLabels()))
	obj.SetAnnotations(withDefaults(obj.GetAnnotations(), wanted.GetAnnotations()))
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRole:
		role := obj.(*rbacv1.ClusterRole)
		if wanted.AggregationRule == nil { // otherwise the aggregation sets them
			role.Rules = withRules(role.Rules, wanted.Rules)
		}
		role.AggregationRule = withSelectors(role.AggregationRule, wanted.AggregationRule)
	case *rbacv1.Role:
		role := obj.(*rbacv1.Role)
		role.Rules = withRules(role.Rules, wanted.Rules)
	case *rbacv1.ClusterRoleBinding:
		binding := obj.(*rbacv1.ClusterRoleBinding)
		binding.Subjects = withSubjects(binding.Subjects, wanted.Subjects)
	case *rbacv1.RoleBinding:
		binding := obj.(*rbacv1.RoleBinding)
		binding.Subjects = withSubjects(binding.Subjects, wanted.Subjects)
	}
	return obj
}

// withDefaults adds the keys that m lacks.
func withDefaults(m, defaults map[string]string) map[string]string {
	all := maps.Clone(defaults)
	maps.Copy(all, m)
	return all
}

// withRules adds the rules that the list does not cover.
func withRules(list, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, missing := validation.Covers(list, wanted)
	return append(list, missing...)
}

// withSelectors adds the selectors that an aggregated role lacks, and makes a role an
// ordinary one that should be.
func withSelectors(rule, wanted *rbacv1.AggregationRule) *rbacv1.AggregationRule {
	if wanted == nil {
		return nil
	}
	if rule == nil {
		rule = &rbacv1.AggregationRule{}
	}
	for _, selector := range wanted.ClusterRoleSelectors {
		if !slices.ContainsFunc(rule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool { return equality.Semantic.DeepEqual(s, selector) }) {
			rule.ClusterRoleSelectors = append(rule.ClusterRoleSelectors, selector)
		}
	}
	return rule
}

func withSubjects(list, wanted []rbacv1.Subject) []rbacv1.Subject {
	for _, subject := range wanted {
		if !slices.Contains(list, subject) {
			list = append(list, subject)
		}
	}
	return list
}
