package rbac

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// aggregationManager owns the rules of aggregated roles, under the name that the
// controller of Kubernetes has.
const aggregationManager = "clusterrole-aggregation-controller"

// Aggregator gives each ClusterRole with an aggregationRule the rules of the
// ClusterRoles that it selects. It is level-triggered: it compares all of them whenever
// one changes. Several servers may have one each.
type Aggregator struct {
	roles registry.Registry
	log   *slog.Logger
}

// NewAggregator returns an Aggregator of the ClusterRoles of an Index.
func (x *Index) NewAggregator() *Aggregator {
	return &Aggregator{roles: x.sources[0].registry, log: x.log}
}

// Run aggregates until ctx ends. It should begin when the default roles are there:
// before, an aggregated one would lose the rules of those that are still missing.
func (a *Aggregator) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := a.follow(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("ClusterRoles cannot be aggregated", "error", err)
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
			}
		}
	}
}

// follow aggregates whenever the cache has events, until one of its watches or writes
// fails.
func (a *Aggregator) follow(ctx context.Context) error {
	watcher, err := a.roles.Watch(ctx, nil)
	if err != nil {
		return err
	}
	defer watcher.Close()
	all := map[string]*rbacv1.ClusterRole{}
	var events [eventBatch]watchcache.Event
	for {
		changed := false
		for n := 1; n > 0; changed = changed || n > 0 {
			if n, err = watcher.Read(events[:]); err != nil {
				return err
			}
			a.apply(ctx, all, events[:n])
		}
		if changed {
			if err := a.aggregate(ctx, all); err != nil {
				return err
			}
		}
		select {
		case <-watcher.Ready():
		case <-ctx.Done():
			return nil
		}
	}
}

// apply changes the roles as the events say.
func (a *Aggregator) apply(ctx context.Context, all map[string]*rbacv1.ClusterRole, events []watchcache.Event) {
	for _, event := range events {
		name := event.Object.Attributes.Name
		if event.Type == watchcache.Deleted {
			delete(all, name)
			continue
		}
		role, err := registry.DecodeAs[*rbacv1.ClusterRole](ctx, a.roles, event.Object)
		if err != nil {
			a.log.Error("a ClusterRole cannot be read and is not aggregated", "role", event.Object.Key, "error", err)
			delete(all, name)
			continue
		}
		all[role.Name] = role
	}
}

// aggregate compares all aggregated roles with what they select.
func (a *Aggregator) aggregate(ctx context.Context, all map[string]*rbacv1.ClusterRole) error {
	var sorted []*rbacv1.ClusterRole // only if a role is aggregated
	for _, role := range all {
		if role.AggregationRule == nil {
			continue
		}
		if sorted == nil {
			sorted = slices.SortedFunc(maps.Values(all), func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
		}
		rules := AggregatedRules(role, sorted)
		if slices.EqualFunc(rules, role.Rules, equalRules) {
			continue
		}
		if err := a.write(ctx, role, rules); err != nil {
			return err
		}
	}
	return nil
}

// AggregatedRules returns the rules of those of the roles that an aggregated role
// selects, each rule once, in the order of the roles.
func AggregatedRules(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	rules, known := []rbacv1.PolicyRule{}, sets.New[string]()
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			continue // selects nothing; validation refuses it
		}
		for _, part := range all {
			if part.Name == role.Name || !selector.Matches(labels.Set(part.Labels)) {
				continue
			}
			for _, rule := range part.Rules {
				key, err := rule.Marshal()
				if err == nil && known.Has(string(key)) {
					continue
				}
				known.Insert(string(key))
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// equalRules reports whether two rules have the same lists, in the same order.
func equalRules(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

// write sets the rules of a role, unless another writer has changed that meanwhile: that is an
// event that comes next. What another server wrote may be of newer parts than this one has read;
// rules of older parts in their place would be rights that nobody gives any more.
func (a *Aggregator) write(ctx context.Context, role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) error {
	_, err := a.roles.Update(ctx, "", role.Name, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(rbacv1.Resource("clusterroles"), role.Name)
		}
		changed := current.DeepCopyObject().(*rbacv1.ClusterRole)
		if changed.ResourceVersion == role.ResourceVersion {
			changed.Rules = rules
		}
		return changed, nil
	}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{FieldManager: aggregationManager}, Unconditional: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
