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
		ValidateCreate: func(c *nodev1.RuntimeClass) field.ErrorList {
			// kube-apiserver has the rule in the tags of the type, and reports it last.
			return append(validateRuntimeClass(c), validate.RequiredSyntax(handlerPath, c.Handler, content.IsDNS1123Label)...)
		},
		ValidateUpdate: validateRuntimeClassUpdate,
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

var handlerPath = field.NewPath("handler")

// validateRuntimeClassUpdate reports last that the handler has changed, and that there is none any
// more. Of the syntax of a changed one the tags say nothing: it is reported where kube-apiserver's
// code does.
func validateRuntimeClassUpdate(c, old *nodev1.RuntimeClass) field.ErrorList {
	var errs field.ErrorList
	if c.Handler != old.Handler && c.Handler != "" {
		errs = validate.Invalid(handlerPath, c.Handler, validation.IsDNS1123Label(c.Handler))
	}
	errs = append(errs, validateRuntimeClass(c)...)
	errs = append(errs, validate.UnchangedUnsaid(handlerPath, c.Handler, old.Handler)...)
	return append(errs, validate.Required(handlerPath, c.Handler)...)
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
