package dynamicresource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
)

// validateDevice checks a device of a slice; what it was before, old, may be nil.
func validateDevice(at *field.Path, d, old *resourcev1.Device, perDevice bool) field.ErrorList {
	errs := validateLabel(at.Child("name"), d.Name)
	errs = append(errs, validateSize(at, d)...)
	errs = append(errs, validateAttributes(at.Child("attributes"), d.Attributes)...)
	if old == nil || !equality.Semantic.DeepEqual(d.Capacity, old.Capacity) {
		shared := define.ValueOr(d.AllowMultipleAllocations, false)
		errs = append(errs, eachOf(at.Child("capacity"), d.Capacity, maxQualifiedName, validateQualified, func(at *field.Path, c resourcev1.DeviceCapacity) field.ErrorList {
			return validateCapacity(at, c, shared)
		})...)
	}
	if old == nil || !equality.Semantic.DeepEqual(d.Taints, old.Taints) {
		errs = append(errs, eachUpTo(at.Child("taints"), d.Taints, resourcev1.DeviceTaintsMaxLength, validateTaint)...)
	}
	errs = append(errs, each(at.Child("consumesCounters"), unlessTooMany(d.ConsumesCounters, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice),
		func(at *field.Path, c resourcev1.DeviceCounterConsumption) field.ErrorList {
			return tooManyOf(at.Child("counters"), c.Counters, resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption)
		})...)
	errs = append(errs, validateReachOfDevice(at, d, perDevice)...)
	errs = append(errs, validateBindingConditions(at, d.BindingConditions, d.BindingFailureConditions)...)
	return append(errs, validateNodeResources(at.Child("nodeAllocatableResources"), d)...)
}

// validateSize bounds how much a device says of itself.
func validateSize(at *field.Path, d *resourcev1.Device) field.ErrorList {
	var errs field.ErrorList
	if most := resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice; len(d.Attributes)+len(d.Capacity) > most {
		errs = append(errs, field.Invalid(at, len(d.Attributes)+len(d.Capacity), fmt.Sprintf("the total number of attributes and capacities must not exceed %d", most)))
	}
	values := 0
	for _, a := range d.Attributes {
		values += max(1, len(a.BoolValues)+len(a.IntValues)+len(a.StringValues)+len(a.VersionValues))
	}
	if most := resourcev1.ResourceSliceMaxAttributeValuesPerDevice; values > most {
		errs = append(errs, field.Invalid(at, values, fmt.Sprintf("the total number of attribute values must not exceed %d", most)))
	}
	return errs
}

// validateReachOfDevice: a device says which nodes reach it where its slice leaves that to its devices.
func validateReachOfDevice(at *field.Path, d *resourcev1.Device, perDevice bool) field.ErrorList {
	const oneOf = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	if !perDevice {
		if d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil {
			return field.ErrorList{field.Invalid(at, nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")}
		}
		return nil
	}
	members, errs := reach{d.NodeName, d.NodeSelector, d.AllNodes}.validate(at, "must not be empty", false)
	switch {
	case len(members) == 0:
		errs = append(errs, field.Required(at, oneOf))
	case len(members) > 1:
		errs = append(errs, field.Invalid(at, "{"+strings.Join(members, ", ")+"}", oneOf))
	}
	return errs
}

// validateNodeResources checks which of a node's resources a device takes.
func validateNodeResources(at *field.Path, d *resourcev1.Device) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(d.NodeAllocatableResources)) {
		r, path := d.NodeAllocatableResources[name], at.Key(string(name))
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && !podspec.IsHugePages(name) {
			errs = append(errs, field.Invalid(path, name, "must be a node allocatable resource name"))
		}
		if r.Mapping == nil && r.Overhead == nil {
			errs = append(errs, field.Required(path, "at least one of mapping or overhead must be set"))
		}
		if r.Mapping != nil {
			errs = append(errs, validateMapping(path.Child("mapping"), r.Mapping, d.Capacity)...)
		}
		if r.Overhead != nil {
			errs = append(errs, validateOverhead(path.Child("overhead"), r.Overhead)...)
		}
	}
	return errs
}

func validateMapping(at *field.Path, m *resourcev1.NodeAllocatableMapping, capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity) field.ErrorList {
	var errs field.ErrorList
	if m.CapacityKey != nil {
		key := at.Child("capacityKey")
		if *m.CapacityKey == "" {
			errs = append(errs, field.Invalid(key, "", "capacityKey must not be an empty string"))
		} else if _, ok := capacity[*m.CapacityKey]; !ok {
			errs = append(errs, field.NotFound(key, *m.CapacityKey))
		}
		if m.CapacityMultiplier == nil {
			errs = append(errs, field.Required(at.Child("capacityMultiplier"), "capacityMultiplier is required when capacityKey is set"))
		} else {
			errs = append(errs, positive(at.Child("capacityMultiplier"), m.CapacityMultiplier)...)
		}
	}
	errs = append(errs, positive(at.Child("deviceMultiplier"), m.DeviceMultiplier)...)
	if m.CapacityMultiplier != nil && m.CapacityKey == nil {
		errs = append(errs, field.Required(at.Child("capacityKey"), "capacityKey is required when capacityMultiplier is set"))
	}
	return errs
}

func positive(at *field.Path, amount *apiresource.Quantity) field.ErrorList {
	if amount != nil && amount.Sign() <= 0 {
		return field.ErrorList{field.Invalid(at, amount.String(), "must be positive")}
	}
	return nil
}

func validateOverhead(at *field.Path, o *resourcev1.NodeAllocatableOverhead) field.ErrorList {
	if o.PerPod == nil && o.PerContainer == nil {
		return field.ErrorList{field.Invalid(at, "", "at least one of perPod or perContainer must be set")}
	}
	var errs field.ErrorList
	if o.PerPod != nil && o.PerPod.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("perPod"), o.PerPod.String(), "must be non-negative"))
	}
	if o.PerContainer != nil && o.PerContainer.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("perContainer"), o.PerContainer.String(), "must be non-negative"))
	}
	return errs
}

func tagsOfDevice(at *field.Path, d resourcev1.Device) field.ErrorList {
	errs := eachOf(at.Child("attributes"), d.Attributes, wholeKey, anything[resourcev1.QualifiedName], tagsOfAttribute)
	counters := at.Child("consumesCounters")
	errs = append(errs, set(counters, d.ConsumesCounters, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, func(c resourcev1.DeviceCounterConsumption) string { return c.CounterSet })...)
	errs = append(errs, each(counters, unlessTooMany(d.ConsumesCounters, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice), tagsOfConsumption)...)
	errs = append(errs, each(at.Child("taints"), d.Taints, tagsOfTaint)...)
	errs = append(errs, tagsOfBindingConditions(at, d.BindingConditions, d.BindingFailureConditions)...)
	return append(errs, eachOf(at.Child("nodeAllocatableResources"), d.NodeAllocatableResources, wholeKey, anything[corev1.ResourceName],
		func(at *field.Path, r resourcev1.NodeAllocatableResource) field.ErrorList {
			if r.Mapping == nil {
				return nil
			}
			return tagOfUnion(at.Child("mapping"), member{"capacityKey", r.Mapping.CapacityKey != nil}, member{"deviceMultiplier", r.Mapping.DeviceMultiplier != nil})
		})...)
}

func tagsOfConsumption(at *field.Path, c resourcev1.DeviceCounterConsumption) field.ErrorList {
	errs := shortName.required(at.Child("counterSet"), c.CounterSet)
	errs = append(errs, tagsOfCounters(at.Child("counters"), c.Counters)...)
	groups := at.Child("compatibilityGroups")
	errs = append(errs, eachUpTo(groups, c.CompatibilityGroups, resourcev1.DeviceCompatibilityGroupsMaxSize, shortName.check)...)
	return append(errs, repeated(groups, unlessTooMany(c.CompatibilityGroups, resourcev1.DeviceCompatibilityGroupsMaxSize), itself[string], func(name string) any { return name })...)
}

// member is one of which exactly one may be set.
type member struct {
	name string
	set  bool
}

func tagOfUnion(at *field.Path, members ...member) field.ErrorList {
	var all, found []string
	for _, m := range members {
		all = append(all, "`"+m.name+"`")
		if m.set {
			found = append(found, m.name)
		}
	}
	switch len(found) {
	case 0:
		return field.ErrorList{field.Invalid(at, "", "must specify one of: "+strings.Join(all, ", "))}
	case 1:
		return nil
	}
	return field.ErrorList{field.Invalid(at, "{"+strings.Join(found, ", ")+"}", "must specify exactly one of: "+strings.Join(all, ", "))}
}
