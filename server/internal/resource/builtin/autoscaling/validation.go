package autoscaling

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	maxPeriodSeconds = 1800
	maxWindowSeconds = 3600
)

// validateAutoscaler checks an autoscaler; old is nil for a new one. Versions of objects that it
// refers to, and that were there before such checks, may stay.
func validateAutoscaler(a, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	spec := &a.Spec
	var errs field.ErrorList
	if spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, validateScaleTarget(validate.SpecPath.Child("scaleTargetRef"), spec.ScaleTargetRef, old)...)
	metrics, fromOutside, wrongObjects := validate.SpecPath.Child("metrics"), false, hasWrongObject(old)
	for i := range spec.Metrics {
		m := &spec.Metrics[i]
		errs = append(errs, validateMetric(metrics.Index(i), m, wrongObjects)...)
		fromOutside = fromOutside || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 && !fromOutside {
		errs = append(errs, field.Forbidden(metrics, "must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	if b := spec.Behavior; b != nil {
		errs = append(errs, validateScalingRules(validate.SpecPath.Child("behavior", "scaleUp"), b.ScaleUp)...)
		errs = append(errs, validateScalingRules(validate.SpecPath.Child("behavior", "scaleDown"), b.ScaleDown)...)
	}
	return append(errs, validateReplicaRange(spec.MinReplicas, spec.MaxReplicas)...)
}

func validateScaleTarget(at *field.Path, target autoscalingv2.CrossVersionObjectReference, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	errs := validateReference(at, target)
	if old != nil && old.Spec.ScaleTargetRef.APIVersion == target.APIVersion && old.Spec.ScaleTargetRef.Kind == target.Kind {
		return errs
	}
	return append(errs, validateVersion(at, target.APIVersion, target.Kind == "ReplicationController")...)
}

// hasWrongObject reports whether a metric is about an object whose version cannot be one.
func hasWrongObject(a *autoscalingv2.HorizontalPodAutoscaler) bool {
	return a != nil && slices.ContainsFunc(a.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil && len(validateVersion(nil, m.Object.DescribedObject.APIVersion, true)) > 0
	})
}

func validateVersion(at *field.Path, version string, core bool) field.ErrorList {
	gv, err := schema.ParseGroupVersion(version)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at.Child("apiVersion"), version, err.Error())}
	case gv.Group == "" && !core:
		return field.ErrorList{field.Invalid(at.Child("apiVersion"), version, "apiVersion must specify API group")}
	}
	return nil
}

// validateReplicaRange checks what kube-apiserver has in the tags of the API's types: it reports
// what they refuse last.
func validateReplicaRange(minReplicas *int32, maxReplicas int32) field.ErrorList {
	errs := validate.NotNegative(validate.SpecPath.Child("minReplicas"), minReplicas)
	at := validate.SpecPath.Child("maxReplicas")
	switch {
	case maxReplicas == 0:
		errs = append(errs, field.Required(at, ""))
	case maxReplicas < 0:
		errs = append(errs, field.Invalid(at, maxReplicas, "must be greater than or equal to 1"))
	}
	return errs
}

// validateStatus checks what a controller reports.
func validateStatus(status *autoscalingv2.HorizontalPodAutoscalerStatus) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("status")
	for i, c := range status.Conditions {
		errs = append(errs, validate.NotNegative(at.Child("conditions").Index(i).Child("observedGeneration"), c.ObservedGeneration)...)
	}
	errs = append(errs, validate.NotNegative(at.Child("currentReplicas"), &status.CurrentReplicas)...)
	return append(errs, validate.NotNegative(at.Child("desiredReplicas"), &status.DesiredReplicas)...)
}

func validateReference(at *field.Path, ref autoscalingv2.CrossVersionObjectReference) field.ErrorList {
	errs := validate.RequiredSyntax(at.Child("kind"), ref.Kind, content.IsPathSegmentName)
	return append(errs, validate.RequiredSyntax(at.Child("name"), ref.Name, content.IsPathSegmentName)...)
}

// validateMetric checks that the source that the type names is there, alone
// and complete.
func validateMetric(at *field.Path, m *autoscalingv2.MetricSpec, wrongObjects bool) field.ErrorList {
	sources := []struct {
		kind  autoscalingv2.MetricSourceType
		name  string
		there bool
		check func(*field.Path) field.ErrorList
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(at *field.Path) field.ErrorList { return validateObjectMetric(at, m.Object, wrongObjects) }},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(at *field.Path) field.ErrorList { return validateExternalMetric(at, m.External) }},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(at *field.Path) field.ErrorList { return validatePodsMetric(at, m.Pods) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(at *field.Path) field.ErrorList {
			errs := requiredWith(at.Child("name"), string(m.Resource.Name), "must specify a resource name")
			return append(errs, validateUtilization(at.Child("target"), m.Resource.Target)...)
		}},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(at *field.Path) field.ErrorList {
			return validateContainerMetric(at, m.ContainerResource)
		}},
	}
	var errs field.ErrorList
	if m.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric source type"))
	}
	kinds := []autoscalingv2.MetricSourceType{}
	for _, source := range sources {
		kinds = append(kinds, source.kind)
	}
	unsupported := validate.Supported(at.Child("type"), m.Type, kinds...)
	errs = append(errs, unsupported...)
	there := 0
	for _, source := range sources {
		if !source.there {
			continue
		}
		if there++; there == 1 { // the others are not looked into
			errs = append(errs, source.check(at.Child(source.name))...)
		}
	}
	errs = append(errs, unsupported...) // kube-apiserver says it twice
	// What is missing is said before what is one too many.
	var others field.ErrorList
	for _, source := range sources {
		switch {
		case !source.there && source.kind == m.Type:
			errs = append(errs, field.Required(at.Child(source.name), "must populate information for the given metric source"))
		case source.there && source.kind != m.Type && there > 1: // one alone is not looked at again
			others = append(others, field.Forbidden(at.Child(source.name), "must populate the given metric source only"))
		}
	}
	return append(errs, others...)
}

func validateObjectMetric(at *field.Path, m *autoscalingv2.ObjectMetricSource, anyVersion bool) field.ErrorList {
	errs := validateReference(at.Child("describedObject"), m.DescribedObject)
	if !anyVersion {
		errs = append(errs, validateVersion(at.Child("describedObject"), m.DescribedObject.APIVersion, true)...)
	}
	errs = append(errs, validateMetricName(at, m.Metric)...)
	errs = append(errs, validateTarget(at.Child("target"), m.Target)...)
	if m.Target.Value == nil && m.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must set either a target value or averageValue"))
	}
	return errs
}

func validateExternalMetric(at *field.Path, m *autoscalingv2.ExternalMetricSource) field.ErrorList {
	errs := validateMetricName(at, m.Metric)
	errs = append(errs, validateTarget(at.Child("target"), m.Target)...)
	switch {
	case m.Target.Value == nil && m.Target.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must set either a target value for metric or a per-pod target"))
	case m.Target.Value != nil && m.Target.AverageValue != nil:
		errs = append(errs, field.Forbidden(at.Child("target", "value"), "may not set both a target value for metric and a per-pod target"))
	}
	return errs
}

func validatePodsMetric(at *field.Path, m *autoscalingv2.PodsMetricSource) field.ErrorList {
	errs := validateMetricName(at, m.Metric)
	errs = append(errs, validateTarget(at.Child("target"), m.Target)...)
	if m.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must specify a positive target averageValue"))
	}
	return errs
}

func validateContainerMetric(at *field.Path, m *autoscalingv2.ContainerResourceMetricSource) field.ErrorList {
	errs := requiredWith(at.Child("name"), string(m.Name), "must specify a resource name")
	if m.Name != "" {
		errs = append(errs, podspec.ContainerResource(at.Child("name"), m.Name)...)
	}
	errs = append(errs, requiredWith(at.Child("container"), m.Container, "must specify a container")...)
	if m.Container != "" {
		errs = append(errs, validate.Invalid(at.Child("container"), m.Container, validation.IsDNS1123Label(m.Container))...)
	}
	return append(errs, validateUtilization(at.Child("target"), m.Target)...)
}

func requiredWith(at *field.Path, value, message string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, message)}
	}
	return nil
}

func validateMetricName(at *field.Path, id autoscalingv2.MetricIdentifier) field.ErrorList {
	name := at.Child("metric", "name")
	if id.Name == "" {
		return field.ErrorList{field.Required(name, "must specify a metric name")}
	}
	return validate.Invalid(name, id.Name, content.IsPathSegmentName(id.Name))
}

// validateUtilization checks the target of a metric that is measured against what pods request.
func validateUtilization(at *field.Path, target autoscalingv2.MetricTarget) field.ErrorList {
	errs := validateTarget(at, target)
	switch {
	case target.AverageUtilization == nil && target.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	case target.AverageUtilization != nil && target.AverageValue != nil:
		errs = append(errs, field.Forbidden(at.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func validateTarget(at *field.Path, target autoscalingv2.MetricTarget) field.ErrorList {
	errs := requiredWith(at.Child("type"), string(target.Type), "must specify a metric target type")
	switch target.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		errs = append(errs, field.Invalid(at.Child("type"), target.Type, "must be either Utilization, Value, or AverageValue"))
	}
	positive := func(at *field.Path, amount *apiresource.Quantity) {
		if amount != nil && amount.Sign() != 1 {
			errs = append(errs, field.Invalid(at, amount, "must be positive"))
		}
	}
	positive(at.Child("value"), target.Value)
	positive(at.Child("averageValue"), target.AverageValue)
	if target.AverageUtilization != nil && *target.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(at.Child("averageUtilization"), *target.AverageUtilization, "must be greater than 0"))
	}
	return errs
}

func validateScalingRules(at *field.Path, r *autoscalingv2.HPAScalingRules) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if seconds := r.StabilizationWindowSeconds; seconds != nil {
		errs = append(errs, inRange(at.Child("stabilizationWindowSeconds"), *seconds, 0, maxWindowSeconds, "must be greater than or equal to zero")...)
	}
	if r.SelectPolicy != nil {
		errs = append(errs, validate.Supported(at.Child("selectPolicy"), *r.SelectPolicy,
			autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect)...)
	}
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(at.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range r.Policies {
		at := at.Child("policies").Index(i)
		errs = append(errs, validate.Supported(at.Child("type"), p.Type, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy)...)
		if p.Value <= 0 {
			errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
		}
		errs = append(errs, inRange(at.Child("periodSeconds"), p.PeriodSeconds, 1, maxPeriodSeconds, "must be greater than zero")...)
	}
	if r.Tolerance != nil {
		errs = append(errs, validate.NotNegativeQuantity(at.Child("tolerance"), *r.Tolerance)...)
	}
	return errs
}

func inRange(at *field.Path, value, least, most int32, tooSmall string) field.ErrorList {
	switch {
	case value < least:
		return field.ErrorList{field.Invalid(at, value, tooSmall)}
	case value > most:
		return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must be less than or equal to %d", most))}
	}
	return nil
}
