package podsecurity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

// Plugin is the admission plugin PodSecurity. It is safe for concurrent use.
type Plugin struct {
	set       *registry.Set
	config    Config
	evaluator policy.Evaluator
	metrics   *metrics
}

// New returns the plugin for the objects of a set.
func New(set *registry.Set, config Config) (*Plugin, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	return &Plugin{set: set, config: config, evaluator: evaluator, metrics: newMetrics()}, nil
}

var (
	namespacesResource = schema.GroupResource{Resource: "namespaces"}
	podsResource       = schema.GroupResource{Resource: "pods"}
)

// Validate refuses pods that violate the level that their namespace enforces, and warns
// of what violates the one that it warns of. It changes nothing.
func (p *Plugin) Validate(ctx context.Context, q *registry.Request) error {
	if q.Operation != registry.Create && q.Operation != registry.Update {
		return nil
	}
	switch q.Resource.GroupResource() {
	case namespacesResource:
		if q.Subresource == "" {
			return p.validateNamespace(ctx, q)
		}
	case podsResource:
		return p.validatePod(ctx, q)
	default:
		if q.Subresource == "" {
			return p.validateTemplate(ctx, q)
		}
	}
	return nil
}

// annotate adds an annotation of Pod Security to the audit event.
func annotate(ctx context.Context, key, value string) {
	reporter.Annotate(ctx, api.AuditAnnotationPrefix+key, value)
}

// isExempt reports whether the namespace or the user of a request is exempt.
func (p *Plugin) isExempt(ctx context.Context, q *registry.Request) bool {
	reason := ""
	if p.config.exemptsNamespace(q.Namespace) {
		reason = "namespace"
	} else if user, ok := auth.UserFrom(ctx); ok && p.config.exemptsUser(user.Name) {
		reason = "user"
	}
	if reason == "" {
		return false
	}
	annotate(ctx, api.ExemptionReasonAnnotationKey, reason)
	p.metrics.exempted(q)
	return true
}

func (p *Plugin) validatePod(ctx context.Context, q *registry.Request) error {
	pod, ok := q.Object.(*corev1.Pod)
	if !ok || q.Subresource == "status" || q.Subresource == "binding" || p.isExempt(ctx, q) {
		return nil
	}
	wanted, wrong, err := p.policyOf(ctx, q.Namespace)
	if err != nil {
		p.metrics.failed(q, "true")
		return err
	}
	if wrong == nil && wanted.FullyPrivileged() {
		p.metrics.allowedPrivileged(q)
		annotate(ctx, api.EnforcedPolicyAnnotationKey, wanted.Enforce.String())
		return nil
	}
	if old, ok := q.Old.(*corev1.Pod); ok && q.Operation == registry.Update && !changesImages(pod, old) && !changesProfiles(pod, old) {
		return nil
	}
	return p.evaluate(ctx, q, wanted, wrong, &pod.ObjectMeta, &pod.Spec, true)
}

// validateTemplate warns of a template from which pods would be made that the namespace
// refuses. The object itself is not refused.
func (p *Plugin) validateTemplate(ctx context.Context, q *registry.Request) error {
	meta, spec := podTemplateOf(q)
	if spec == nil || p.isExempt(ctx, q) {
		return nil
	}
	wanted, wrong, err := p.policyOf(ctx, q.Namespace)
	if err != nil {
		annotate(ctx, "error", err.Error())
		p.metrics.failed(q, "true")
		return nil
	}
	if wrong == nil && wanted.Warn.Level == api.LevelPrivileged && wanted.Audit.Level == api.LevelPrivileged {
		return nil
	}
	return p.evaluate(ctx, q, wanted, wrong, meta, spec, false)
}

// evaluate checks a pod against the three levels of its namespace. wrong is what is wrong
// with the labels: instead of those, the strictest level holds.
func (p *Plugin) evaluate(ctx context.Context, q *registry.Request, wanted api.Policy, wrong error, meta *metav1.ObjectMeta, spec *corev1.PodSpec, enforce bool) error {
	if p.config.exemptsRuntimeClass(spec.RuntimeClassName) {
		annotate(ctx, api.ExemptionReasonAnnotationKey, "runtimeClass")
		p.metrics.exempted(q)
		return nil
	}
	if wrong != nil {
		annotate(ctx, "error", fmt.Sprintf("Failed to parse policy: %v", wrong))
		p.metrics.failed(q, "false")
	}
	results := map[api.LevelVersion]policy.AggregateCheckResult{}
	check := func(level api.LevelVersion) policy.AggregateCheckResult {
		result, known := results[level]
		if !known {
			result = policy.AggregateCheckResults(p.evaluator.EvaluatePod(level, meta, spec))
			results[level] = result
		}
		return result
	}
	if result := check(wanted.Audit); !result.Allowed {
		p.metrics.evaluated(q, deny, wanted.Audit, modeAudit)
		annotate(ctx, api.AuditViolationsAnnotationKey, fmt.Sprintf("would violate PodSecurity %q: %s", wanted.Audit.String(), result.ForbiddenDetail()))
	}
	if enforce {
		annotate(ctx, api.EnforcedPolicyAnnotationKey, wanted.Enforce.String())
		result := check(wanted.Enforce)
		if !result.Allowed {
			p.metrics.evaluated(q, deny, wanted.Enforce, modeEnforce)
			return apierrors.NewForbidden(q.Resource.GroupResource(), q.Name,
				fmt.Errorf("violates PodSecurity %q: %s", wanted.Enforce.String(), result.ForbiddenDetail()))
		}
		p.metrics.evaluated(q, allow, wanted.Enforce, modeEnforce)
	}
	if result := check(wanted.Warn); !result.Allowed {
		p.metrics.evaluated(q, deny, wanted.Warn, modeWarn)
		reporter.Warn(ctx, fmt.Sprintf("would violate PodSecurity %q: %s", wanted.Warn.String(), result.ForbiddenDetail()))
	}
	return nil
}

// changesProfiles reports whether an update changes the annotations that name AppArmor or
// seccomp profiles. The standards are about them as about the fields that have taken
// their place, and older kubelets obey them.
func changesProfiles(pod, old *corev1.Pod) bool {
	profiles := func(pod *corev1.Pod) map[string]string {
		found := maps.Clone(pod.Annotations)
		maps.DeleteFunc(found, func(name, _ string) bool {
			return !slices.ContainsFunc(profileAnnotations, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		})
		return found
	}
	return !maps.Equal(profiles(pod), profiles(old))
}

// profileAnnotations begin the names of the annotations of AppArmor and seccomp.
var profileAnnotations = []string{
	corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix,
	corev1.SeccompPodAnnotationKey, corev1.SeccompContainerAnnotationKeyPrefix,
}

// changesImages reports whether an update brings other images or containers into a pod:
// nothing else of its spec that the standards are about can be changed.
func changesImages(pod, old *corev1.Pod) bool {
	had := map[string]string{}
	for _, containers := range [][]corev1.Container{old.Spec.Containers, old.Spec.InitContainers} {
		for i := range containers {
			had[containers[i].Name] = containers[i].Image
		}
	}
	for i := range old.Spec.EphemeralContainers {
		had[old.Spec.EphemeralContainers[i].Name] = old.Spec.EphemeralContainers[i].Image
	}
	isNew := func(name, image string) bool {
		before, known := had[name]
		return !known || before != image
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if isNew(containers[i].Name, containers[i].Image) {
				return true
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if isNew(pod.Spec.EphemeralContainers[i].Name, pod.Spec.EphemeralContainers[i].Image) {
			return true
		}
	}
	return false
}
