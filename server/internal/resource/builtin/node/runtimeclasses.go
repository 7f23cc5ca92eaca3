package node

import (
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func runtimeClassRules() define.Rules[*nodev1.RuntimeClass] {
	return define.Rules[*nodev1.RuntimeClass]{
		Validate: func(c *nodev1.RuntimeClass) field.ErrorList {
			errs := validate.RequiredSyntax(field.NewPath("handler"), c.Handler, validation.IsDNS1123Label)
			if c.Overhead != nil {
				errs = append(errs, validate.Quantities(field.NewPath("overhead", "podFixed"), c.Overhead.PodFixed)...)
			}
			if c.Scheduling != nil {
				errs = append(errs, podspec.ValidateTolerations(field.NewPath("scheduling", "tolerations"), c.Scheduling.Tolerations)...)
			}
			return errs
		},
		ValidateUpdate: func(c, old *nodev1.RuntimeClass) field.ErrorList {
			return validate.Unchanged(field.NewPath("handler"), c.Handler, old.Handler)
		},
	}
}
