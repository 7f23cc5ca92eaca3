package node

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func runtimeClassRules() define.Rules[*nodev1.RuntimeClass] {
	return define.Rules[*nodev1.RuntimeClass]{
		Validate:       validateRuntimeClass,
		ValidateCreate: validateHandler,
		ValidateUpdate: func(c, old *nodev1.RuntimeClass) field.ErrorList {
			if c.Handler == old.Handler {
				return nil
			}
			at := field.NewPath("handler")
			changed := validate.UnchangedUnsaid(at, c.Handler, old.Handler)
			if c.Handler == "" {
				return append(changed, field.Required(at, ""))
			}
			return append(validate.Invalid(at, c.Handler, validation.IsDNS1123Label(c.Handler)), changed...)
		},
		Warnings: func(c, _ *nodev1.RuntimeClass) []string {
			if c.Scheduling == nil {
				return nil
			}
			var warnings []string
			for _, key := range slices.Sorted(maps.Keys(c.Scheduling.NodeSelector)) {
				if text := podspec.NodeLabelWarning(key); text != "" {
					warnings = append(warnings, "scheduling.nodeSelector: "+text)
				}
			}
			return warnings
		},
	}
}

func validateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	var errs field.ErrorList
	if c.Overhead != nil {
		errs = podspec.ValidateLimits(field.NewPath("overhead"), c.Overhead.PodFixed)
	}
	if c.Scheduling != nil {
		at := field.NewPath("scheduling")
		errs = append(errs, metavalidation.ValidateLabels(c.Scheduling.NodeSelector, at.Child("nodeSelector"))...)
		errs = append(errs, validateTolerations(at.Child("tolerations"), c.Scheduling.Tolerations)...)
	}
	return errs
}

// validateHandler checks a new class for what kube-apiserver has in the tags of the type, and reports last.
func validateHandler(c *nodev1.RuntimeClass) field.ErrorList {
	return validate.RequiredSyntax(field.NewPath("handler"), c.Handler, content.IsDNS1123Label)
}

// validateTolerations checks tolerations of which none may be there twice, with another time or not.
func validateTolerations(path *field.Path, tolerations []corev1.Toleration) field.ErrorList {
	errs := podspec.ValidateTolerationsOfClass(path, tolerations)
	seen := map[corev1.Toleration]bool{}
	for i, t := range tolerations {
		key := t
		key.TolerationSeconds = nil
		if seen[key] {
			errs = append(errs, field.Duplicate(path.Index(i), t))
		}
		seen[key] = true
	}
	return errs
}
