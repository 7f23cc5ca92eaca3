package dynamicresource

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func resourceSliceRules() define.Rules[*resourcev1.ResourceSlice] {
	return define.Rules[*resourcev1.ResourceSlice]{
		DefaultTimes: func(s *resourcev1.ResourceSlice, now metav1.Time) {
			for i := range s.Spec.Devices {
				for j := range s.Spec.Devices[i].Taints {
					define.SetDefaultPtr(&s.Spec.Devices[i].Taints[j].TimeAdded, now)
				}
			}
		},
		ValidateCreate: func(s *resourcev1.ResourceSlice) field.ErrorList { return validateSlice(&s.Spec, nil) },
		ValidateUpdate: func(s, old *resourcev1.ResourceSlice) field.ErrorList { return validateSlice(&s.Spec, &old.Spec) },
		Warnings: func(s, _ *resourcev1.ResourceSlice) []string {
			if driver := s.Spec.Driver; driver != strings.ToLower(driver) {
				return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters", driver)}
			}
			return nil
		},
	}
}

// validateSlice checks a slice; what it was before, old, may be nil.
func validateSlice(spec, old *resourcev1.ResourceSliceSpec) field.ErrorList {
	at := validate.SpecPath
	errs := validateDriver(at.Child("driver"), spec.Driver)
	errs = append(errs, validateResourcePool(at.Child("pool"), spec.Pool)...)
	if old != nil {
		errs = append(errs, validate.Unchanged(at.Child("pool", "name"), spec.Pool.Name, old.Pool.Name)...)
		errs = append(errs, validate.Unchanged(at.Child("driver"), spec.Driver, old.Driver)...)
		errs = append(errs, validate.Unchanged(at.Child("nodeName"), spec.NodeName, old.NodeName)...)
	}
	errs = append(errs, validateReach(at, spec)...)
	errs = append(errs, validateDevices(at, spec, old)...)
	errs = append(errs, each(at.Child("sharedCounters"), unlessTooMany(spec.SharedCounters, resourcev1.ResourceSliceMaxCounterSets),
		func(at *field.Path, s resourcev1.CounterSet) field.ErrorList {
			return tooManyOf(at.Child("counters"), s.Counters, resourcev1.ResourceSliceMaxCountersPerCounterSet)
		})...)
	if spec.PartitionTypeAttribute != nil {
		errs = append(errs, validatePartitionType(at, spec, string(*spec.PartitionTypeAttribute))...)
	}
	errs = append(errs, validateSkipped(at.Child("skipNodeOperations"), spec.SkipNodeOperations)...)
	if old == nil || !equality.Semantic.DeepEqual(spec.Devices, old.Devices) { // effects of taints may be those of a later version
		errs = append(errs, each(at.Child("devices"), spec.Devices, tagsOfDevice)...)
	}
	return append(errs, tagsOfSlice(at, spec)...)
}

func validateResourcePool(at *field.Path, pool resourcev1.ResourcePool) field.ErrorList {
	errs := validatePool(at.Child("name"), pool.Name)
	if pool.ResourceSliceCount <= 0 {
		errs = append(errs, field.Invalid(at.Child("resourceSliceCount"), pool.ResourceSliceCount, "must be greater than zero"))
	}
	if pool.Generation < 0 {
		errs = append(errs, field.Invalid(at.Child("generation"), pool.Generation, "must be greater than or equal to zero"))
	}
	return errs
}

// reach is which nodes reach devices: one of its members.
type reach struct {
	nodeName *string
	selector *corev1.NodeSelector
	allNodes *bool
}

// validate returns the members that are set, as errors show them.
func (r reach) validate(at *field.Path, emptyName string, oneTerm bool) (members []string, errs field.ErrorList) {
	if r.nodeName != nil {
		if *r.nodeName == "" {
			errs = append(errs, field.Invalid(at.Child("nodeName"), "", emptyName))
		} else {
			members = append(members, "`nodeName`")
			errs = append(errs, validate.Invalid(at.Child("nodeName"), *r.nodeName, validation.IsDNS1123Subdomain(*r.nodeName))...)
		}
	}
	if r.selector != nil {
		members = append(members, "`nodeSelector`")
		errs = append(errs, podspec.ValidateNodeSelector(at.Child("nodeSelector"), r.selector)...)
		if terms := r.selector.NodeSelectorTerms; oneTerm && len(terms) != 1 {
			errs = append(errs, field.Invalid(at.Child("nodeSelector", "nodeSelectorTerms"), terms, "must have exactly one node selector term"))
		}
	}
	members, wrong := trueOrUnset(at, "allNodes", r.allNodes, members)
	return members, append(errs, wrong...)
}

// trueOrUnset adds a member that is set to members, and complains about one that is false.
func trueOrUnset(at *field.Path, name string, value *bool, members []string) ([]string, field.ErrorList) {
	switch {
	case value == nil:
		return members, nil
	case !*value:
		return members, field.ErrorList{field.Invalid(at.Child(name), false, "must be either unset or set to true")}
	}
	return append(members, "`"+name+"`"), nil
}

// validateReach: one way says which nodes reach the devices of a slice.
func validateReach(at *field.Path, spec *resourcev1.ResourceSliceSpec) field.ErrorList {
	const oneOf = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	members, errs := reach{spec.NodeName, spec.NodeSelector, spec.AllNodes}.validate(at, "must be either unset or set to a non-empty string", true)
	members, wrong := trueOrUnset(at, "perDeviceNodeSelection", spec.PerDeviceNodeSelection, members)
	errs = append(errs, wrong...)
	switch {
	case len(members) == 0:
		errs = append(errs, field.Required(at, oneOf))
	case len(members) > 1:
		errs = append(errs, field.Invalid(at, "{"+strings.Join(members, ", ")+"}", oneOf+", but multiple fields are set"))
	}
	if spec.SharedCounters != nil && spec.Devices != nil {
		errs = append(errs, field.Invalid(at, "", "only one of `sharedCounters` or `devices` is allowed"))
	}
	return errs
}

func validateDevices(at *field.Path, spec, old *resourcev1.ResourceSliceSpec) field.ErrorList {
	before := map[string]*resourcev1.Device{}
	if old != nil {
		for i := range old.Devices {
			if d := &old.Devices[i]; before[d.Name] == nil {
				before[d.Name] = d
			}
		}
	}
	most := resourcev1.ResourceSliceMaxDevices
	if slices.ContainsFunc(spec.Devices, elaborate) {
		most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	at = at.Child("devices")
	if errs := tooMany(at, spec.Devices, most); len(errs) > 0 {
		return errs
	}
	perDevice := define.ValueOr(spec.PerDeviceNodeSelection, false)
	errs := each(at, spec.Devices, func(at *field.Path, d resourcev1.Device) field.ErrorList {
		return validateDevice(at, &d, before[d.Name], perDevice)
	})
	name := func(d resourcev1.Device) string { return d.Name }
	return append(errs, repeated(at, spec.Devices, name, func(d resourcev1.Device) any { return d.Name })...)
}

// elaborate reports whether a device has what makes slices large, so that they may have fewer.
func elaborate(d resourcev1.Device) bool {
	if len(d.Taints) > 0 || len(d.ConsumesCounters) > 0 {
		return true
	}
	for _, a := range d.Attributes {
		if a.BoolValues != nil || a.IntValues != nil || a.StringValues != nil || a.VersionValues != nil {
			return true
		}
	}
	return false
}

// validatePartitionType: devices that consume counters have the attribute that says of which type they are.
func validatePartitionType(at *field.Path, spec *resourcev1.ResourceSliceSpec, name string) field.ErrorList {
	partitioned := func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 }
	if !slices.ContainsFunc(spec.Devices, partitioned) {
		return field.ErrorList{field.Invalid(at.Child("partitionTypeAttribute"), name, "may only be set on a slice which declares devices that consume counters")}
	}
	if !strings.Contains(name, "/") || len(validateQualified(nil, resourcev1.QualifiedName(name))) > 0 {
		return nil // the tag's error is enough
	}
	var errs field.ErrorList
	for i, d := range spec.Devices {
		if !partitioned(d) {
			continue
		}
		path := at.Child("devices").Index(i).Child("attributes").Key(name)
		attribute, ok := d.Attributes[resourcev1.QualifiedName(name)]
		if bare, own := strings.CutPrefix(name, spec.Driver+"/"); !ok && own {
			attribute, ok = d.Attributes[resourcev1.QualifiedName(bare)]
		}
		switch {
		case !ok:
			errs = append(errs, field.Required(path, "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"))
		case attribute.StringValue == nil:
			errs = append(errs, field.Invalid(path, attribute, "must be a string value because `partitionTypeAttribute` names this attribute"))
		}
	}
	return errs
}

// tagsOfSlice checks what is not about devices.
func tagsOfSlice(at *field.Path, spec *resourcev1.ResourceSliceSpec) field.ErrorList {
	counters := at.Child("sharedCounters")
	errs := set(counters, spec.SharedCounters, resourcev1.ResourceSliceMaxCounterSets, func(s resourcev1.CounterSet) string { return s.Name })
	errs = append(errs, each(counters, unlessTooMany(spec.SharedCounters, resourcev1.ResourceSliceMaxCounterSets), func(at *field.Path, s resourcev1.CounterSet) field.ErrorList {
		return append(shortName.required(at.Child("name"), s.Name), tagsOfCounters(at.Child("counters"), s.Counters)...)
	})...)
	errs = append(errs, present(fullyQualifiedName, at.Child("partitionTypeAttribute"), spec.PartitionTypeAttribute)...)
	return append(errs, tagsOfSkipped(at.Child("skipNodeOperations"), spec.SkipNodeOperations)...)
}

func tagsOfCounters(at *field.Path, counters map[string]resourcev1.Counter) field.ErrorList {
	if len(counters) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	return eachOf(at, counters, wholeKey, shortName.check, anything[resourcev1.Counter])
}
