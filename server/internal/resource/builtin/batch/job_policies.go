package batch

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Limits of a job's policies, and of its indexes.
const (
	maxPolicyRules      = 20
	maxExitCodes        = 255
	maxPodConditions    = 20
	maxIndexedParallel  = 100_000
	maxParallelPerIndex = 10_000
	maxBackoffPerIndex  = 100_000
)

// validateFailurePolicy checks what becomes of a job when its pods fail
// (KEP-3329).
func validateFailurePolicy(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	policy := spec.PodFailurePolicy
	if policy == nil {
		return nil
	}
	list := path.Child("rules")
	if n := len(policy.Rules); n > maxPolicyRules {
		return field.ErrorList{field.TooMany(list, n, maxPolicyRules)}
	}
	containers := sets.New[string]()
	for _, each := range [][]corev1.Container{spec.Template.Spec.InitContainers, spec.Template.Spec.Containers} {
		for i := range each {
			containers.Insert(each[i].Name)
		}
	}
	var errs field.ErrorList
	for i := range policy.Rules {
		errs = append(errs, validateFailureRule(list.Index(i), spec, &policy.Rules[i], containers)...)
	}
	return errs
}

func validateFailureRule(path *field.Path, spec *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, containers sets.Set[string]) field.ErrorList {
	action := path.Child("action")
	errs := validate.OneOf(action, r.Action, batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore)
	if r.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Invalid(action, r.Action, "requires the backoffLimitPerIndex to be set"))
	}
	switch {
	case r.OnExitCodes != nil && len(r.OnPodConditions) > 0:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case r.OnExitCodes == nil && len(r.OnPodConditions) == 0:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	if r.OnExitCodes != nil {
		errs = append(errs, validateExitCodes(path.Child("onExitCodes"), r.OnExitCodes, containers)...)
	}
	conditions := path.Child("onPodConditions")
	if n := len(r.OnPodConditions); n > maxPodConditions {
		errs = append(errs, field.TooMany(conditions, n, maxPodConditions))
	}
	for i, c := range r.OnPodConditions {
		at := conditions.Index(i)
		errs = append(errs, validate.RequiredSyntax(at.Child("type"), string(c.Type), validation.IsQualifiedName)...)
		errs = append(errs, validate.OneOf(at.Child("status"), c.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
	}
	return errs
}

func validateExitCodes(path *field.Path, on *batchv1.PodFailurePolicyOnExitCodesRequirement, containers sets.Set[string]) field.ErrorList {
	errs := validate.OneOf(path.Child("operator"), on.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if name := on.ContainerName; name != nil && !containers.Has(*name) {
		errs = append(errs, field.Invalid(path.Child("containerName"), *name, "must be one of the container or initContainer names in the pod template"))
	}
	at := path.Child("values")
	switch n := len(on.Values); {
	case n == 0:
		errs = append(errs, field.Invalid(at, on.Values, "at least one value is required"))
	case n > maxExitCodes:
		errs = append(errs, field.TooMany(at, n, maxExitCodes))
	}
	seen := sets.New[int32]()
	for i, code := range on.Values {
		if on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && code == 0 {
			errs = append(errs, field.Invalid(at.Index(i), code, "must not be 0 for the In operator"))
		}
		if seen.Has(code) {
			errs = append(errs, field.Duplicate(at.Index(i), code))
		}
		seen.Insert(code)
	}
	if !slices.IsSorted(on.Values) {
		errs = append(errs, field.Invalid(at, on.Values, "must be ordered"))
	}
	return errs
}

// validateSuccessPolicy checks which indexes of a job are enough (KEP-3998).
func validateSuccessPolicy(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	policy := spec.SuccessPolicy
	if policy == nil {
		return nil
	}
	if define.ValueOr(spec.CompletionMode, "") != batchv1.IndexedCompletion {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "requires indexed completion mode")}
	}
	list := path.Child("rules")
	switch n := len(policy.Rules); {
	case n == 0:
		return field.ErrorList{field.Required(list, "at least one rules must be specified when the successPolicy is specified")}
	case n > maxPolicyRules:
		return field.ErrorList{field.TooMany(list, n, maxPolicyRules)}
	}
	completions := int(define.ValueOr(spec.Completions, 0))
	var errs field.ErrorList
	for i, r := range policy.Rules {
		at := list.Index(i)
		if r.SucceededCount == nil && r.SucceededIndexes == nil {
			errs = append(errs, field.Required(at, "at least one of succeededCount or succeededIndexes must be specified"))
		}
		total := completions
		if r.SucceededIndexes != nil {
			n, err := countIndexes(*r.SucceededIndexes, completions)
			if err != "" {
				errs = append(errs, field.Invalid(at.Child("succeededIndexes"), *r.SucceededIndexes, err))
			}
			total = n
		}
		if n := r.SucceededCount; n != nil {
			errs = append(errs, validate.AtLeast(at.Child("succeededCount"), n, 1)...)
			if int(*n) > total {
				errs = append(errs, field.Invalid(at.Child("succeededCount"), *n, "must be less than or equal to "+strconv.Itoa(total)))
			}
		}
	}
	return errs
}

var indexSpan = regexp.MustCompile(`^\d+(-\d+)?$`)

// countIndexes counts those of "0,3-5", which must ascend and be below limit.
func countIndexes(text string, limit int) (count int, wrong string) {
	last := -1
	for item := range strings.SplitSeq(text, ",") {
		if !indexSpan.MatchString(item) {
			return 0, "error parsing succeededIndexes: cannot convert string to integer for index: " + strconv.Quote(item)
		}
		low, high, isSpan := strings.Cut(item, "-")
		from, err := strconv.Atoi(low)
		to := from
		if isSpan && err == nil {
			to, err = strconv.Atoi(high)
		}
		switch {
		case err != nil || to >= limit:
			return 0, "error parsing succeededIndexes: too large index: " + strconv.Quote(item)
		case from <= last || to < from:
			return 0, "error parsing succeededIndexes: non-increasing order, previous: " + strconv.Itoa(last) + ", current: " + strconv.Itoa(from)
		}
		count, last = count+to-from+1, to
	}
	return count, ""
}

// validateIndexes checks what only indexed jobs have, and how large they may
// be.
func validateIndexes(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	var errs field.ErrorList
	perIndex := spec.BackoffLimitPerIndex != nil
	if spec.MaxFailedIndexes != nil && !perIndex {
		errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if define.ValueOr(spec.CompletionMode, "") != batchv1.IndexedCompletion {
		return errs
	}
	parallel, completions := define.ValueOr(spec.Parallelism, 0), define.ValueOr(spec.Completions, 0)
	if parallel > maxIndexedParallel {
		errs = append(errs, field.Invalid(path.Child("parallelism"), parallel, "must be less than or equal to 100000 when completion mode is Indexed"))
	}
	if most := spec.MaxFailedIndexes; most != nil && *most > completions {
		errs = append(errs, field.Invalid(path.Child("maxFailedIndexes"), *most, "must be less than or equal to completions"))
	}
	if perIndex && completions > maxBackoffPerIndex {
		most := spec.MaxFailedIndexes
		if most == nil {
			errs = append(errs, field.Required(path.Child("maxFailedIndexes"), "must be specified when completions is above 100000"))
		}
		if parallel > maxParallelPerIndex {
			errs = append(errs, field.Invalid(path.Child("parallelism"), parallel, "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"))
		}
	}
	return errs
}
