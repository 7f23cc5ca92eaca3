package apps

import (
	"encoding/json"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
	"github.com/levelwire/levelwire/server/internal/resource/structequal"
)

func daemonSetRules() define.Rules[*appsv1.DaemonSet] {
	return define.Rules[*appsv1.DaemonSet]{
		Default:          defaultDaemonSet,
		PrepareForCreate: prepareDaemonSetForCreate,
		PrepareForUpdate: prepareDaemonSetForUpdate,
		ValidateCreate:   validateDaemonSet,
		Warnings: func(d, old *appsv1.DaemonSet) []string {
			if old != nil && templateGeneration(old) == templateGeneration(d) {
				return nil
			}
			return podspec.TemplateWarnings(validate.SpecPath.Child("template"), &d.Spec.Template)
		},
		ValidateUpdate: func(d, old *appsv1.DaemonSet) field.ErrorList {
			errs := validate.Unchanged(validate.SpecPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
			return append(errs, validateDaemonSet(d)...)
		},
		PrepareForStatusUpdate: func(d, old *appsv1.DaemonSet) { setTemplateGeneration(d, templateGeneration(old)) },
		ValidateStatus:         validateDaemonSetStatus,
	}
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	podspec.DefaultTemplate(&d.Spec.Template)
	setTemplateGeneration(d, templateGeneration(d)) // the client's, as a default is
	define.SetDefaultPtr(&d.Spec.RevisionHistoryLimit, revisionHistory)
	strategy := &d.Spec.UpdateStrategy
	define.SetDefault(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		define.SetDefaultPtr(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		define.SetDefaultPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	// Inside kube-apiserver these are numbers that are always there, whatever the type.
	if strategy.RollingUpdate != nil {
		define.SetDefaultPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(0))
		define.SetDefaultPtr(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
}

// The generation of a DaemonSet's template was a field once. apps/v1 has it as an annotation, which
// counts from 1 and is not the client's.

func prepareDaemonSetForCreate(d *appsv1.DaemonSet) {
	setTemplateGeneration(d, max(templateGeneration(d), 1))
}

func prepareDaemonSetForUpdate(d, old *appsv1.DaemonSet) {
	generation := templateGeneration(old)
	if !structequal.Semantic(&d.Spec.Template, &old.Spec.Template) {
		generation++
	}
	setTemplateGeneration(d, generation)
}

func templateGeneration(d *appsv1.DaemonSet) int64 {
	generation, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0 // there is none
	}
	return generation
}

func setTemplateGeneration(d *appsv1.DaemonSet, generation int64) {
	annotations := maps.Clone(d.Annotations) // what hooks see may share it
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(generation, 10)
	d.Annotations = annotations
}

func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	spec := &d.Spec
	selector := validate.SpecPath.Child("selector")
	errs := validate.LabelSelector(selector, spec.Selector)
	errs = append(errs, validate.Selects(spec.Selector, spec.Template.Labels)...)
	if s := spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(selector, s, "empty selector is invalid for daemonset"))
	}
	errs = append(errs, podspec.ValidateAlwaysRestartingTemplate(&spec.Template, "DaemonSet")...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, validateDaemonSetStrategy(validate.SpecPath.Child("updateStrategy"), &spec.UpdateStrategy)...)
	return append(errs, validate.NotNegative(validate.SpecPath.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit)...)
}

func validateDaemonSetStrategy(path *field.Path, s *appsv1.DaemonSetUpdateStrategy) field.ErrorList {
	rolling := s.RollingUpdate
	switch {
	case s.Type != appsv1.RollingUpdateDaemonSetStrategyType && s.Type != appsv1.OnDeleteDaemonSetStrategyType:
		return field.ErrorList{field.NotSupported(path, s, []appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType})}
	case rolling == nil || s.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	}
	var errs field.ErrorList
	at := path.Child("rollingUpdate")
	errs = append(errs, validate.CountOrPercent(at.Child("maxUnavailable"), rolling.MaxUnavailable)...)
	errs = append(errs, validate.CountOrPercent(at.Child("maxSurge"), rolling.MaxSurge)...)
	errs = append(errs, validate.PercentAtMost100(at.Child("maxUnavailable"), rolling.MaxUnavailable)...)
	errs = append(errs, validate.PercentAtMost100(at.Child("maxSurge"), rolling.MaxSurge)...)
	switch surges, pauses := !validate.IsZero(rolling.MaxSurge), !validate.IsZero(rolling.MaxUnavailable); {
	case !surges && !pauses:
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	case surges && pauses:
		errs = append(errs, field.Invalid(at.Child("maxSurge"), rolling.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	}
	return errs
}

func controllerRevisionRules() define.Rules[*appsv1.ControllerRevision] {
	path := field.NewPath("data")
	return define.Rules[*appsv1.ControllerRevision]{
		PrepareForUpdate: func(c, old *appsv1.ControllerRevision) { define.KeepJSON(&c.Data, old.Data) },
		Validate: func(c *appsv1.ControllerRevision) field.ErrorList {
			return validate.NotNegative(field.NewPath("revision"), &c.Revision)
		},
		ValidateCreate: func(c *appsv1.ControllerRevision) field.ErrorList { return validateRevisionData(path, c.Data.Raw) },
		ValidateUpdate: func(c, old *appsv1.ControllerRevision) field.ErrorList {
			return validate.Unchanged(path, c.Data, old.Data)
		},
	}
}

// validateRevisionData checks the data of a new revision: that of an old one never changes.
func validateRevisionData(path *field.Path, data []byte) field.ErrorList {
	var value any
	switch {
	case len(data) == 0:
		return field.ErrorList{field.Required(path, "data is mandatory")}
	case json.Unmarshal(data, &value) != nil:
		return field.ErrorList{field.Invalid(path, "<value omitted>", "error parsing data: it is not valid JSON")}
	case value == nil:
		return field.ErrorList{field.Required(path, "data is mandatory")}
	}
	if _, ok := value.(map[string]any); !ok {
		return field.ErrorList{field.Required(path, "data must be a valid JSON object")}
	}
	return nil
}
