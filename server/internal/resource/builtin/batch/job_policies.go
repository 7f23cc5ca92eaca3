package batch

import (
	"fmt"
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

// Limits of a job's policies.
const (
	maxPolicyRules   = 20
	maxExitCodes     = 255
	maxPodConditions = 20
	maxIndexesBytes  = 64 << 10
)

// validateFailurePolicy checks what becomes of a job when its pods fail
// (KEP-3329).
func validateFailurePolicy(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	policy := spec.PodFailurePolicy
	if policy == nil {
		return nil
	}
	var errs field.ErrorList
	list := path.Child("rules")
	if n := len(policy.Rules); n > maxPolicyRules {
		errs = append(errs, field.TooMany(list, n, maxPolicyRules))
	}
	containers := sets.New[string]()
	for _, each := range [][]corev1.Container{spec.Template.Spec.InitContainers, spec.Template.Spec.Containers} {
		for i := range each {
			containers.Insert(each[i].Name)
		}
	}
	for i := range policy.Rules {
		errs = append(errs, validateFailureRule(list.Index(i), spec, &policy.Rules[i], containers)...)
	}
	return errs
}

func validateFailureRule(path *field.Path, spec *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, containers sets.Set[string]) field.ErrorList {
	action := path.Child("action")
	errs := oneOf(action, r.Action, batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore)
	if r.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Invalid(action, r.Action, "requires the backoffLimitPerIndex to be set"))
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
		errs = append(errs, validate.Invalid(at.Child("type"), string(c.Type), validation.IsQualifiedName(string(c.Type)))...)
		errs = append(errs, oneOf(at.Child("status"), c.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
	}
	switch {
	case r.OnExitCodes != nil && len(r.OnPodConditions) > 0:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case r.OnExitCodes == nil && len(r.OnPodConditions) == 0:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return errs
}

// oneOf is validate.OneOf for the values in a job's policies: if there is none, the refusal lists what there may be.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("valid values: %q", allowed))}
	}
	return validate.Supported(path, value, allowed...)
}

func validateExitCodes(path *field.Path, on *batchv1.PodFailurePolicyOnExitCodesRequirement, containers sets.Set[string]) field.ErrorList {
	errs := oneOf(path.Child("operator"), on.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
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
	if !isIndexed(spec) {
		return field.ErrorList{field.Invalid(path, *policy, "requires indexed completion mode")}
	}
	var errs field.ErrorList
	list := path.Child("rules")
	switch n := len(policy.Rules); {
	case n == 0:
		errs = append(errs, field.Required(list, "at least one rules must be specified when the successPolicy is specified"))
	case n > maxPolicyRules:
		errs = append(errs, field.TooMany(list, n, maxPolicyRules))
	}
	for i := range policy.Rules {
		errs = append(errs, validateSuccessRule(list.Index(i), &policy.Rules[i], define.ValueOr(spec.Completions, 0))...)
	}
	return errs
}

func validateSuccessRule(path *field.Path, r *batchv1.SuccessPolicyRule, completions int32) field.ErrorList {
	var errs field.ErrorList
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		errs = append(errs, field.Required(path, "at least one of succeededCount or succeededIndexes must be specified"))
	}
	var total int32
	if indexes, at := r.SucceededIndexes, path.Child("succeededIndexes"); indexes != nil {
		if len(*indexes) > maxIndexesBytes {
			errs = append(errs, field.TooLong(at, "", maxIndexesBytes))
		}
		var err error
		if total, err = countIndexes(*indexes, completions); err != nil {
			errs = append(errs, field.Invalid(at, *indexes, "error parsing succeededIndexes: "+err.Error()))
		}
	}
	n, at := r.SucceededCount, path.Child("succeededCount")
	if n == nil {
		return errs
	}
	errs = append(errs, validate.NotNegative(at, n)...)
	if *n > completions {
		errs = append(errs, field.Invalid(at, *n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions)))
	}
	if r.SucceededIndexes != nil && *n > total {
		errs = append(errs, field.Invalid(at, *n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", total)))
	}
	return errs
}

// countIndexes counts those of "0,3-5", which must ascend and be below limit.
func countIndexes(text string, limit int32) (int32, error) {
	if text == "" {
		return 0, nil
	}
	count, last := int32(0), int32(-1)
	for i, item := range strings.Split(text, ",") {
		first, end, err := parseSpan(item, limit)
		switch {
		case err != nil:
			return 0, err
		case i > 0 && last >= first:
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, first)
		}
		count, last = count+end-first+1, end
	}
	return count, nil
}

// parseSpan reads "3" or "3-5".
func parseSpan(item string, limit int32) (first, last int32, err error) {
	ends := strings.Split(item, "-")
	if len(ends) > 2 {
		return 0, 0, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", item)
	}
	var numbers []int32
	for _, end := range ends {
		n, err := strconv.Atoi(end)
		switch {
		case err != nil:
			return 0, 0, fmt.Errorf("cannot convert string to integer for index: %q", end)
		case n >= int(limit):
			return 0, 0, fmt.Errorf("too large index: %q", end)
		}
		numbers = append(numbers, int32(n)) //nolint:gosec // below limit, and without a sign
	}
	if len(numbers) == 2 && numbers[0] >= numbers[1] {
		return 0, 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", numbers[0], numbers[1])
	}
	return numbers[0], numbers[len(numbers)-1], nil
}
