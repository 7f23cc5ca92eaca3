package podrules

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/internal/quota"
	"github.com/levelwire/levelwire/server/internal/configfile"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
)

// The annotations of a namespace that say as JSON which tolerations its pods get, and which
// ones they may have. They take the place of the cluster's.
const (
	defaultTolerations = "scheduler.alpha.kubernetes.io/defaultTolerations"
	allowedTolerations = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// Tolerations is what applies to namespaces without annotations.
type Tolerations struct {
	metav1.TypeMeta `json:",inline"`
	Default         []corev1.Toleration `json:"default"`
	// Whitelist is the tolerations that pods may have; empty: all.
	Whitelist []corev1.Toleration `json:"whitelist"`
}

// ParseTolerations reads a Configuration of
// podtolerationrestriction.admission.k8s.io/v1alpha1.
func ParseTolerations(data []byte) (Tolerations, error) {
	if err := configfile.CheckKind(data, "Configuration", "podtolerationrestriction.admission.k8s.io/v1alpha1"); err != nil {
		return Tolerations{}, err
	}
	var read Tolerations
	if err := yaml.UnmarshalStrict(data, &read); err != nil {
		return Tolerations{}, err
	}
	errs := podspec.ValidateTolerations(field.NewPath("default"), read.Default)
	errs = append(errs, podspec.ValidateTolerations(field.NewPath("whitelist"), read.Whitelist)...)
	return read, errs.ToAggregate()
}

// TolerationRestriction gives pods the default tolerations of their namespace, and refuses
// those that the namespace does not allow (the plugin PodTolerationRestriction).
type TolerationRestriction struct {
	set       *registry.Set
	cluster   Tolerations
	whitelist *allowance // the cluster's
}

// NewTolerationRestriction returns the plugin for the namespaces of a set.
func NewTolerationRestriction(set *registry.Set, cluster Tolerations) TolerationRestriction {
	return TolerationRestriction{set, cluster, allowanceOf(cluster.Whitelist)}
}

// Mutate adds the default tolerations to a new pod, and to every pod that requests memory
// or processors a toleration of nodes that are short of memory: it is not evicted first.
func (t TolerationRestriction) Mutate(ctx context.Context, q *registry.Request) error {
	pod := podOf(q)
	if pod == nil {
		return nil
	}
	var added []corev1.Toleration
	if q.Operation == registry.Create {
		wanted, stated, err := t.ofNamespace(ctx, q, defaultTolerations)
		if err != nil {
			return err
		}
		if !stated {
			wanted = t.cluster.Default
		}
		added = slices.Clone(wanted)
	}
	if !quota.IsBestEffort(pod) {
		added = append(added, corev1.Toleration{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	if len(added) > 0 {
		pod.Spec.Tolerations = union(append(slices.Clone(pod.Spec.Tolerations), added...))
	}
	return t.Validate(ctx, q)
}

// Validate refuses a pod with a toleration that its namespace does not allow.
func (t TolerationRestriction) Validate(ctx context.Context, q *registry.Request) error {
	pod := podOf(q)
	if pod == nil || len(pod.Spec.Tolerations) == 0 {
		return nil
	}
	allowed, stated, err := t.ofNamespace(ctx, q, allowedTolerations)
	if err != nil {
		return err
	}
	included, scope := t.whitelist, "cluster"
	if stated {
		included, scope = allowanceOf(allowed), "namespace"
	}
	if included.isEmpty() {
		return nil
	}
	for i := range pod.Spec.Tolerations {
		if !included.has(&pod.Spec.Tolerations[i]) {
			return q.Forbidden(fmt.Errorf("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", scope))
		}
	}
	return nil
}

// ofNamespace returns the tolerations in an annotation of the request's namespace, and
// whether there is one.
func (t TolerationRestriction) ofNamespace(ctx context.Context, q *registry.Request, annotation string) ([]corev1.Toleration, bool, error) {
	namespaces, ok := t.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil, false, nil
	}
	namespace, err := registry.GetAs[*corev1.Namespace](ctx, namespaces, "", q.Namespace)
	if err != nil {
		return nil, false, err
	}
	text, ok := namespace.Annotations[annotation]
	if !ok || text == "" {
		return nil, ok, nil
	}
	var tolerations []corev1.Toleration
	if err := json.Unmarshal([]byte(text), &tolerations); err != nil {
		return nil, false, q.Forbidden(fmt.Errorf("the annotation %s of namespace %s must be a JSON list of tolerations: %w", annotation, q.Namespace, err))
	}
	return tolerations, true, nil
}

// maxUnited is how many tolerations are compared each with each.
const maxUnited = 1000

// union returns the tolerations without those that another one includes. Of equal ones the
// first stays. Of very many, only equal ones are left out.
func union(all []corev1.Toleration) []corev1.Toleration {
	if len(all) > maxUnited {
		return distinct(all)
	}
	var kept []corev1.Toleration
	for i := range all {
		t := &all[i]
		redundant := slices.ContainsFunc(kept, func(k corev1.Toleration) bool { return includes(&k, t) }) ||
			slices.ContainsFunc(all[i+1:], func(later corev1.Toleration) bool {
				return !equality.Semantic.DeepEqual(&later, t) && includes(&later, t)
			})
		if !redundant {
			kept = append(kept, *t)
		}
	}
	return kept
}

func distinct(all []corev1.Toleration) []corev1.Toleration {
	var kept []corev1.Toleration
	seen := make(sets.Set[tolerationKey], len(all))
	for i := range all {
		if key := keyOf(&all[i]); !seen.Has(key) {
			seen.Insert(key)
			kept = append(kept, all[i])
		}
	}
	return kept
}

// includes reports whether a pod with the toleration wide tolerates all that one with t
// does.
func includes(wide, t *corev1.Toleration) bool {
	everyKey := wide.Key == "" && wide.Operator == corev1.TolerationOpExists
	stays := wide.Effect != corev1.TaintEffectNoExecute || wide.TolerationSeconds == nil ||
		t.TolerationSeconds != nil && *t.TolerationSeconds <= *wide.TolerationSeconds
	switch {
	case equality.Semantic.DeepEqual(wide, t):
		return true
	case wide.Key != t.Key && !everyKey, wide.Effect != "" && wide.Effect != t.Effect, !stays:
		return false
	case wide.Operator == corev1.TolerationOpExists:
		return true
	case wide.Operator == "" || wide.Operator == corev1.TolerationOpEqual:
		return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == wide.Value
	}
	return false
}

// tolerationKey is the same for equal tolerations. The seconds are nil, or a number.
type tolerationKey struct {
	rest    corev1.Toleration
	seconds any
}

func keyOf(t *corev1.Toleration) tolerationKey {
	key := tolerationKey{rest: *t}
	if t.TolerationSeconds != nil {
		key.rest.TolerationSeconds, key.seconds = nil, *t.TolerationSeconds
	}
	return key
}
