package flowcontrol

import (
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// mandatorySchema refuses another spec of a FlowSchema that every cluster has: what matches
// no other one must get somewhere, and administrators must never wait. Source:
// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#mandatory-configuration-objects.
func mandatorySchema(s *flowcontrolv1.FlowSchema) field.ErrorList {
	for _, mandatory := range bootstrap.MandatoryFlowSchemas {
		if mandatory.Name == s.Name && !equality.Semantic.DeepEqual(s.Spec, mandatory.Spec) {
			return field.ErrorList{field.Invalid(validate.SpecPath, s.Spec, fmt.Sprintf("spec of '%s' must equal the fixed value", s.Name))}
		}
	}
	return nil
}

// mandatoryLevel is mandatorySchema for PriorityLevelConfigurations. How many seats the
// exempt level has, and lends, can be set.
func mandatoryLevel(p *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	for _, mandatory := range bootstrap.MandatoryPriorityLevelConfigurations {
		if mandatory.Name != p.Name {
			continue
		}
		spec, but := p.Spec, ""
		if mandatory.Spec.Exempt != nil {
			spec.Exempt, but = mandatory.Spec.Exempt, " except the 'spec.exempt' field"
		}
		if !equality.Semantic.DeepEqual(spec, mandatory.Spec) {
			return field.ErrorList{field.Invalid(validate.SpecPath, p.Spec, fmt.Sprintf("spec of '%s'%s must equal the fixed value", p.Name, but))}
		}
	}
	return nil
}
