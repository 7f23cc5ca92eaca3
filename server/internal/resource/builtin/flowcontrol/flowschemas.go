package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	defaultPrecedence int32 = 1000
	maxPrecedence     int32 = 10000
	defaultShares     int32 = 30
)

func flowSchemaRules() define.Rules[*flowcontrolv1.FlowSchema] {
	return define.Rules[*flowcontrolv1.FlowSchema]{
		Default: func(s *flowcontrolv1.FlowSchema) { define.SetDefault(&s.Spec.MatchingPrecedence, defaultPrecedence) },
		Validate: func(s *flowcontrolv1.FlowSchema) field.ErrorList {
			errs := validate.Required(validate.SpecPath.Child("priorityLevelConfiguration", "name"), s.Spec.PriorityLevelConfiguration.Name)
			if p := s.Spec.MatchingPrecedence; p < 1 || p > maxPrecedence {
				errs = append(errs, field.Invalid(validate.SpecPath.Child("matchingPrecedence"), p, "must be between 1 and 10000"))
			}
			if m := s.Spec.DistinguisherMethod; m != nil {
				errs = append(errs, validate.OneOf(validate.SpecPath.Child("distinguisherMethod", "type"), m.Type,
					flowcontrolv1.FlowDistinguisherMethodByUserType, flowcontrolv1.FlowDistinguisherMethodByNamespaceType)...)
			}
			for i, rule := range s.Spec.Rules {
				at := validate.SpecPath.Child("rules").Index(i)
				if len(rule.Subjects) == 0 {
					errs = append(errs, field.Required(at.Child("subjects"), "subjects must contain at least one value"))
				}
				if len(rule.ResourceRules)+len(rule.NonResourceRules) == 0 {
					errs = append(errs, field.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty"))
				}
			}
			return append(errs, mandatorySchema(s)...)
		},
	}
}

func priorityLevelRules() define.Rules[*flowcontrolv1.PriorityLevelConfiguration] {
	return define.Rules[*flowcontrolv1.PriorityLevelConfiguration]{
		Default:  defaultPriorityLevel,
		Validate: validatePriorityLevel,
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
	spec := &p.Spec
	errs := validate.OneOf(validate.SpecPath.Child("type"), spec.Type, flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)
	limited := validate.SpecPath.Child("limited")
	switch {
	case spec.Type == flowcontrolv1.PriorityLevelEnablementExempt && spec.Limited != nil:
		errs = append(errs, field.Forbidden(limited, "must be nil if the type is Exempt"))
	case spec.Type == flowcontrolv1.PriorityLevelEnablementLimited && spec.Exempt != nil:
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("exempt"), "must be nil if the type is Limited"))
	case spec.Type == flowcontrolv1.PriorityLevelEnablementLimited && spec.Limited == nil:
		errs = append(errs, field.Required(limited, "must not be empty when type is Limited"))
	case spec.Limited != nil:
		errs = append(errs, validate.NotNegative(limited.Child("nominalConcurrencyShares"), spec.Limited.NominalConcurrencyShares)...)
		response := spec.Limited.LimitResponse
		at := limited.Child("limitResponse")
		errs = append(errs, validate.OneOf(at.Child("type"), response.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
		if response.Type == flowcontrolv1.LimitResponseTypeQueue && response.Queuing == nil {
			errs = append(errs, field.Required(at.Child("queuing"), "must not be empty if limitResponse.type is Queue"))
		}
		if response.Type == flowcontrolv1.LimitResponseTypeReject && response.Queuing != nil {
			errs = append(errs, field.Forbidden(at.Child("queuing"), "must be nil if limitResponse.type is not Queue"))
		}
	}
	return append(errs, mandatoryLevel(p)...)
}
