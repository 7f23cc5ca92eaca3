package podsecurity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// labelPrefix begins the labels by which a namespace asks for a level.
const labelPrefix = api.AuditAnnotationPrefix

// labelsForm is kept with a cached namespace: the labels of Pod Security as JSON,
// nothing if it has none, so that a pod's create does not decode its namespace.
var labelsForm = watchcache.NewForm("pod security labels")

// policyOf returns what a namespace asks for. wrong is what is wrong with its labels.
func (p *Plugin) policyOf(ctx context.Context, namespace string) (wanted api.Policy, wrong, err error) {
	labels, err := p.labelsOf(ctx, namespace)
	if err != nil {
		return api.Policy{}, nil, apierrors.NewInternalError(fmt.Errorf("failed to lookup namespace %q: %w", namespace, err))
	}
	if len(labels) == 0 {
		return p.config.defaults, nil, nil
	}
	wanted, problems := api.PolicyToEvaluate(labels, p.config.defaults)
	return wanted, problems.ToAggregate(), nil
}

func (p *Plugin) labelsOf(ctx context.Context, namespace string) (map[string]string, error) {
	namespaces, ok := p.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil, nil
	}
	snapshot, err := namespaces.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	cached, ok := snapshot.Get(namespaces.Resource().Stored().Key("", namespace))
	if !ok {
		obj, err := namespaces.GetFromStore(ctx, "", namespace)
		if apierrors.IsNotFound(err) {
			return nil, nil // only without NamespaceLifecycle, which would have refused the object
		}
		if err != nil {
			return nil, err
		}
		return obj.GetLabels(), nil
	}
	encoded, err := cached.Form(labelsForm, func(o *watchcache.Object) ([]byte, error) {
		ns, err := registry.DecodeAs[*corev1.Namespace](ctx, namespaces, o)
		if err != nil {
			return nil, err
		}
		ours := maps.Clone(ns.Labels)
		maps.DeleteFunc(ours, func(name, _ string) bool { return !strings.HasPrefix(name, labelPrefix) })
		if len(ours) == 0 {
			return nil, nil
		}
		return json.Marshal(ours)
	})
	if err != nil || len(encoded) == 0 {
		return nil, err
	}
	var labels map[string]string
	err = json.Unmarshal(encoded, &labels)
	return labels, err
}

// validateNamespace refuses labels that mean nothing, and warns of pods that are there
// and violate the level that will be enforced.
func (p *Plugin) validateNamespace(ctx context.Context, q *registry.Request) error {
	namespace, ok := q.Object.(*corev1.Namespace)
	if !ok {
		return nil
	}
	wanted, problems := api.PolicyToEvaluate(namespace.Labels, p.config.defaults)
	if q.Operation == registry.Create {
		if len(problems) > 0 {
			return invalid(q, problems)
		}
		p.warnIfExempt(ctx, namespace, wanted)
		return nil
	}
	old, ok := q.Old.(*corev1.Namespace)
	if !ok {
		return nil
	}
	before, oldProblems := api.PolicyToEvaluate(old.Labels, p.config.defaults)
	if len(problems) > 0 && problems.ToAggregate().Error() != errorText(oldProblems) {
		return invalid(q, problems)
	}
	if !isStricter(wanted.Enforce, before.Enforce) {
		return nil
	}
	if p.config.exemptsNamespace(namespace.Name) {
		p.metrics.exempted(q)
		p.warnIfExempt(ctx, namespace, wanted)
		return nil
	}
	for _, warning := range p.checkPods(ctx, namespace.Name, wanted.Enforce) {
		reporter.Warn(ctx, warning)
	}
	return nil
}

func errorText(problems field.ErrorList) string {
	if len(problems) == 0 {
		return ""
	}
	return problems.ToAggregate().Error()
}

func invalid(q *registry.Request, problems field.ErrorList) error {
	return apierrors.NewInvalid(q.Resource.GroupVersionKind().GroupKind(), q.Name, problems)
}

// isStricter reports whether pods that were allowed before may violate the wanted level.
func isStricter(wanted, before api.LevelVersion) bool {
	switch {
	case wanted == before, wanted.Level == api.LevelPrivileged:
		return false
	case wanted.Version == before.Version:
		return api.CompareLevels(wanted.Level, before.Level) > 0
	}
	return true
}

// warnIfExempt warns of labels that have no effect.
func (p *Plugin) warnIfExempt(ctx context.Context, namespace *corev1.Namespace, wanted api.Policy) {
	if !p.config.exemptsNamespace(namespace.Name) || wanted.FullyPrivileged() || wanted.Equivalent(&p.config.defaults) {
		return
	}
	var stated []string
	for _, mode := range []struct {
		name           string
		level          api.LevelVersion
		label, version string
	}{
		{"enforce", wanted.Enforce, api.EnforceLevelLabel, api.EnforceVersionLabel},
		{"audit", wanted.Audit, api.AuditLevelLabel, api.AuditVersionLabel},
		{"warn", wanted.Warn, api.WarnLevelLabel, api.WarnVersionLabel},
	} {
		_, hasLevel := namespace.Labels[mode.label]
		_, hasVersion := namespace.Labels[mode.version]
		if mode.level.Level != api.LevelPrivileged && (hasLevel || hasVersion) {
			stated = append(stated, mode.name+"="+mode.level.String())
		}
	}
	reporter.Warn(ctx, fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", namespace.Name, strings.Join(stated, ", ")))
}

// What checkPods looks at, at most, so that a change of a label is answered soon. All of it is in memory at a
// time, several times as large as its JSON.
const (
	maxPodsChecked = 3000
	maxPodBytes    = 32 << 20
	maxCheckTime   = time.Second
)

// checkPods returns warnings of the pods of a namespace that violate a level: one for
// each kind of violation.
func (p *Plugin) checkPods(ctx context.Context, namespace string, enforce api.LevelVersion) []string {
	deadline := time.Now().Add(maxCheckTime)
	if ends, ok := ctx.Deadline(); ok {
		if half := time.Now().Add(time.Until(ends) / 2); half.Before(deadline) {
			deadline = half
		}
	}
	pods, total, err := p.podsOf(ctx, namespace)
	if err != nil {
		return []string{"failed to list pods while checking new PodSecurity enforce level"}
	}
	violating := map[string][]string{} // by the reason, the pods' names
	checked := 0
	for _, pod := range pods {
		if checked > 0 && time.Now().After(deadline) {
			break
		}
		checked++
		if result := policy.AggregateCheckResults(p.evaluator.EvaluatePod(enforce, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
			reason := result.ForbiddenReason()
			violating[reason] = append(violating[reason], pod.Name)
		}
	}
	var warnings []string
	if checked < total {
		warnings = append(warnings, fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods", checked, total))
	}
	if len(violating) > 0 {
		warnings = append(warnings, fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, enforce.String()))
	}
	var reasons []string
	for reason, names := range violating {
		reasons = append(reasons, slices.Min(names)+others(len(names)-1)+": "+reason)
	}
	slices.Sort(reasons)
	return append(warnings, reasons...)
}

func others(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (and 1 other pod)"
	}
	return fmt.Sprintf(" (and %d other pods)", n)
}

// podsOf returns pods of a namespace that are not exempt, maxPodsChecked and maxPodBytes of JSON at most, and how
// many there are. One of each controller comes first, because the others are like it.
func (p *Plugin) podsOf(ctx context.Context, namespace string) (pods []*corev1.Pod, total int, err error) {
	registered, ok := p.set.Lookup("", "v1", "pods")
	if !ok {
		return nil, 0, nil
	}
	snapshot, err := registered.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	total = snapshot.Count(namespace+"/", "")
	repeated := map[*corev1.Pod]int{}
	seen := map[types.UID]bool{}
	bytes := 0
	for o := range snapshot.Range(namespace+"/", "") {
		if bytes += o.Size(); len(pods) == maxPodsChecked || bytes > maxPodBytes {
			break
		}
		pod, err := registry.DecodeAs[*corev1.Pod](ctx, registered, o)
		if err != nil {
			return nil, 0, err
		}
		if p.config.exemptsRuntimeClass(pod.Spec.RuntimeClassName) {
			total--
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			if seen[owner.UID] {
				repeated[pod] = 1
			}
			seen[owner.UID] = true
		}
		pods = append(pods, pod)
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(repeated[a], repeated[b]) })
	return pods, total, nil
}
