package flowcontrol

import (
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
)

// TestMandatoryObjects: their specs are fixed, but for the seats of the exempt level; the
// suggested ones can be changed.
func TestMandatoryObjects(t *testing.T) {
	schema := flowSchemaRules()
	for _, mandatory := range bootstrap.MandatoryFlowSchemas {
		s := mandatory.DeepCopy()
		schema.Default(s)
		if errs := schema.Validate(s); len(errs) > 0 {
			t.Errorf("%s as it must be: %v", s.Name, errs)
		}
		s.Spec.MatchingPrecedence = 77
		if errs := schema.Validate(s); len(errs) != 1 || !strings.Contains(errs[0].Error(), "must equal the fixed value") {
			t.Errorf("%s with another precedence: %v", s.Name, errs)
		}
		s.Name = "other"
		if errs := schema.Validate(s); len(errs) > 0 {
			t.Errorf("a FlowSchema of another name: %v", errs)
		}
	}
	level := priorityLevelRules()
	for _, mandatory := range bootstrap.MandatoryPriorityLevelConfigurations {
		p := mandatory.DeepCopy()
		level.Default(p)
		if errs := level.Validate(p); len(errs) > 0 {
			t.Errorf("%s as it must be: %v", p.Name, errs)
		}
		seats := int32(7)
		if p.Spec.Exempt != nil {
			p.Spec.Exempt.NominalConcurrencyShares = &seats
			if errs := level.Validate(p); len(errs) > 0 {
				t.Errorf("%s with seats: %v", p.Name, errs)
			}
			p.Spec = flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &seats, LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			}}
		} else {
			p.Spec.Limited.NominalConcurrencyShares = &seats
		}
		if err := level.Validate(p).ToAggregate(); err == nil || !strings.Contains(err.Error(), "must equal the fixed value") {
			t.Errorf("%s with another spec: %v", p.Name, err)
		}
	}
	for _, suggested := range bootstrap.SuggestedPriorityLevelConfigurations {
		p := suggested.DeepCopy()
		if p.Spec.Limited != nil {
			p.Spec.Limited.NominalConcurrencyShares = new(int32(77))
		}
		if errs := level.Validate(p); len(errs) > 0 {
			t.Errorf("%s with other shares: %v", p.Name, errs)
		}
	}
}
