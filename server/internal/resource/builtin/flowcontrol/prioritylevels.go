package flowcontrol

import (
	"fmt"
	"math"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	defaultShares int32 = 30
	maxQueues     int32 = 10_000_000
	hashBits            = 60 // of the hash by which a flow gets its hand
)

func priorityLevelRules() define.Rules[*flowcontrolv1.PriorityLevelConfiguration] {
	return define.Rules[*flowcontrolv1.PriorityLevelConfiguration]{
		Default:  defaultPriorityLevel,
		Validate: validatePriorityLevel,
		ValidateStatus: func(p, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
			return validateConditions(p.Status.Conditions, func(c flowcontrolv1.PriorityLevelConfigurationCondition) string { return string(c.Type) })
		},
	}
}

func defaultPriorityLevel(p *flowcontrolv1.PriorityLevelConfiguration) {
	if exempt := p.Spec.Exempt; exempt != nil {
		define.SetDefaultPtr(&exempt.NominalConcurrencyShares, 0)
		define.SetDefaultPtr(&exempt.LendablePercent, 0)
	}
	limited := p.Spec.Limited
	if limited == nil {
		return
	}
	define.SetDefaultPtr(&limited.NominalConcurrencyShares, defaultShares)
	define.SetDefaultPtr(&limited.LendablePercent, 0)
	if q := limited.LimitResponse.Queuing; q != nil {
		define.SetDefault(&q.Queues, 64)
		define.SetDefault(&q.HandSize, 8)
		define.SetDefault(&q.QueueLengthLimit, 50)
	}
}

func validatePriorityLevel(p *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	const roundTrip = flowcontrolv1beta3.PriorityLevelPreserveZeroConcurrencySharesKey
	var errs field.ErrorList
	if _, ok := p.Annotations[roundTrip]; ok {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations"), "annotation '"+roundTrip+"' is forbidden"))
	}
	errs = append(errs, validateLevelType(p)...)
	spec := &p.Spec
	switch spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if spec.Exempt != nil {
			errs = append(errs, validateExempt(validate.SpecPath.Child("exempt"), spec.Exempt)...)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if spec.Limited != nil {
			errs = append(errs, validateLimited(validate.SpecPath.Child("limited"), spec.Limited)...)
		}
	}
	errs = append(errs, mandatoryLevel(p)...)
	return append(errs, validateLevelMembers(spec)...)
}

func validateLevelType(p *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	const exempt, limited = flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited
	path, kind := validate.SpecPath.Child("type"), p.Spec.Type
	var errs field.ErrorList
	if (p.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt) != (kind == exempt) {
		errs = append(errs, field.Invalid(path, kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	if kind == "" {
		return errs // validateLevelMembers complains
	}
	return append(errs, validate.Supported(path, kind, exempt, limited)...)
}

// validateLevelMembers checks which members the types of a level and of its response ask for.
// kube-apiserver has these rules in the tags of the API's types, and reports what they refuse last.
func validateLevelMembers(spec *flowcontrolv1.PriorityLevelConfigurationSpec) field.ErrorList {
	var errs field.ErrorList
	if spec.Type != flowcontrolv1.PriorityLevelEnablementExempt && spec.Exempt != nil {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("exempt"), ""))
	}
	limited := validate.SpecPath.Child("limited")
	errs = append(errs, memberOf(limited, spec.Limited != nil, spec.Type == flowcontrolv1.PriorityLevelEnablementLimited)...)
	errs = append(errs, validate.Required(validate.SpecPath.Child("type"), string(spec.Type))...)
	if spec.Limited == nil {
		return errs
	}
	response, at := spec.Limited.LimitResponse, limited.Child("limitResponse")
	errs = append(errs, memberOf(at.Child("queuing"), response.Queuing != nil, response.Type == flowcontrolv1.LimitResponseTypeQueue)...)
	return append(errs, validate.Required(at.Child("type"), string(response.Type))...)
}

// memberOf checks a member that one type requires and every other one forbids.
func memberOf(path *field.Path, set, wanted bool) field.ErrorList {
	switch {
	case set && !wanted:
		return field.ErrorList{field.Forbidden(path, "")}
	case wanted && !set:
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

func validateExempt(path *field.Path, exempt *flowcontrolv1.ExemptPriorityLevelConfiguration) field.ErrorList {
	errs := validateShares(path.Child("nominalConcurrencyShares"), exempt.NominalConcurrencyShares)
	return append(errs, validateLendable(path.Child("lendablePercent"), exempt.LendablePercent)...)
}

func validateLimited(path *field.Path, limited *flowcontrolv1.LimitedPriorityLevelConfiguration) field.ErrorList {
	errs := validateShares(path.Child("nominalConcurrencyShares"), limited.NominalConcurrencyShares)
	response, at := limited.LimitResponse, path.Child("limitResponse")
	if response.Type != "" { // validateLevelMembers complains about none
		errs = append(errs, validate.Supported(at.Child("type"), response.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
	}
	if response.Type == flowcontrolv1.LimitResponseTypeQueue && response.Queuing != nil {
		errs = append(errs, validateQueuing(at.Child("queuing"), response.Queuing)...)
	}
	errs = append(errs, validateLendable(path.Child("lendablePercent"), limited.LendablePercent)...)
	if percent := limited.BorrowingLimitPercent; percent != nil && *percent < 0 {
		errs = append(errs, field.Invalid(path.Child("borrowingLimitPercent"), *percent, "if specified, must be a non-negative integer"))
	}
	return errs
}

func validateShares(path *field.Path, shares *int32) field.ErrorList {
	if shares != nil && *shares < 0 {
		return field.ErrorList{field.Invalid(path, *shares, "must be a non-negative integer")}
	}
	return nil
}

func validateLendable(path *field.Path, percent *int32) field.ErrorList {
	if percent != nil && (*percent < 0 || *percent > 100) {
		return field.ErrorList{field.Invalid(path, *percent, "must be between 0 and 100, inclusive")}
	}
	return nil
}

func validateQueuing(path *field.Path, q *flowcontrolv1.QueuingConfiguration) field.ErrorList {
	var errs field.ErrorList
	if q.QueueLengthLimit <= 0 {
		errs = append(errs, field.Invalid(path.Child("queueLengthLimit"), q.QueueLengthLimit, "must be positive"))
	}
	switch queues := path.Child("queues"); {
	case q.Queues <= 0:
		errs = append(errs, field.Invalid(queues, q.Queues, "must be positive"))
	case q.Queues > maxQueues:
		errs = append(errs, field.Invalid(queues, q.Queues, fmt.Sprintf("must not be greater than %d", maxQueues)))
	}
	return append(errs, validateHand(path.Child("handSize"), q)...)
}

// validateHand checks the number of queues that a flow is spread over: its hash has too few
// bits to deal large hands from many queues.
func validateHand(path *field.Path, q *flowcontrolv1.QueuingConfiguration) field.ErrorList {
	switch {
	case q.HandSize <= 0:
		return field.ErrorList{field.Invalid(path, q.HandSize, "must be positive")}
	case q.HandSize > q.Queues:
		return field.ErrorList{field.Invalid(path, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues))}
	case math.Ceil(math.Log2(float64(q.Queues))*float64(q.HandSize)) > hashBits:
		return field.ErrorList{field.Invalid(path, q.HandSize, fmt.Sprintf(
			"required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, hashBits))}
	}
	return nil
}
