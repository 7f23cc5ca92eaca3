package builtin

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	defaultPrecedence int32 = 1000
	maxPrecedence     int32 = 10000
	defaultShares     int32 = 30
)

func flowSchemaRules() rules[*flowcontrolv1.FlowSchema] {
	return rules[*flowcontrolv1.FlowSchema]{
		Default: func(s *flowcontrolv1.FlowSchema) { setDefault(&s.Spec.MatchingPrecedence, defaultPrecedence) },
		Validate: func(s *flowcontrolv1.FlowSchema) field.ErrorList {
			errs := required(specPath.Child("priorityLevelConfiguration", "name"), s.Spec.PriorityLevelConfiguration.Name)
			if p := s.Spec.MatchingPrecedence; p < 1 || p > maxPrecedence {
				errs = append(errs, field.Invalid(specPath.Child("matchingPrecedence"), p, "must be between 1 and 10000"))
			}
			if m := s.Spec.DistinguisherMethod; m != nil {
				errs = append(errs, oneOf(specPath.Child("distinguisherMethod", "type"), m.Type,
					flowcontrolv1.FlowDistinguisherMethodByUserType, flowcontrolv1.FlowDistinguisherMethodByNamespaceType)...)
			}
			for i, rule := range s.Spec.Rules {
				at := specPath.Child("rules").Index(i)
				if len(rule.Subjects) == 0 {
					errs = append(errs, field.Required(at.Child("subjects"), "subjects must contain at least one value"))
				}
				if len(rule.ResourceRules)+len(rule.NonResourceRules) == 0 {
					errs = append(errs, field.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty"))
				}
			}
			return errs
		},
	}
}

func priorityLevelRules() rules[*flowcontrolv1.PriorityLevelConfiguration] {
	return rules[*flowcontrolv1.PriorityLevelConfiguration]{
		Default:  defaultPriorityLevel,
		Validate: validatePriorityLevel,
	}
}

func defaultPriorityLevel(p *flowcontrolv1.PriorityLevelConfiguration) {
	if exempt := p.Spec.Exempt; exempt != nil {
		setDefaultPtr(&exempt.NominalConcurrencyShares, 0)
		setDefaultPtr(&exempt.LendablePercent, 0)
	}
	limited := p.Spec.Limited
	if limited == nil {
		return
	}
	setDefaultPtr(&limited.NominalConcurrencyShares, defaultShares)
	setDefaultPtr(&limited.LendablePercent, 0)
	if q := limited.LimitResponse.Queuing; q != nil {
		setDefault(&q.Queues, 64)
		setDefault(&q.HandSize, 8)
		setDefault(&q.QueueLengthLimit, 50)
	}
}

func validatePriorityLevel(p *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	spec := &p.Spec
	errs := oneOf(specPath.Child("type"), spec.Type, flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)
	limited := specPath.Child("limited")
	switch {
	case spec.Type == flowcontrolv1.PriorityLevelEnablementExempt && spec.Limited != nil:
		errs = append(errs, field.Forbidden(limited, "must be nil if the type is Exempt"))
	case spec.Type == flowcontrolv1.PriorityLevelEnablementLimited && spec.Exempt != nil:
		errs = append(errs, field.Forbidden(specPath.Child("exempt"), "must be nil if the type is Limited"))
	case spec.Type == flowcontrolv1.PriorityLevelEnablementLimited && spec.Limited == nil:
		errs = append(errs, field.Required(limited, "must not be empty when type is Limited"))
	case spec.Limited != nil:
		errs = append(errs, notNegative(limited.Child("nominalConcurrencyShares"), spec.Limited.NominalConcurrencyShares)...)
		response := spec.Limited.LimitResponse
		at := limited.Child("limitResponse")
		errs = append(errs, oneOf(at.Child("type"), response.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
		if response.Type == flowcontrolv1.LimitResponseTypeQueue && response.Queuing == nil {
			errs = append(errs, field.Required(at.Child("queuing"), "must not be empty if limitResponse.type is Queue"))
		}
		if response.Type == flowcontrolv1.LimitResponseTypeReject && response.Queuing != nil {
			errs = append(errs, field.Forbidden(at.Child("queuing"), "must be nil if limitResponse.type is not Queue"))
		}
	}
	return errs
}
