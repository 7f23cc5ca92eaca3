package dynamicresource

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

var claimStatusPath = field.NewPath("status")

// deviceID names a device, or a share of one. Its members are named as in kube-apiserver's errors.
type deviceID struct{ Driver, Pool, Device, ShareID string }

func idOfResult(r resourcev1.DeviceRequestAllocationResult) deviceID {
	return deviceID{r.Driver, r.Pool, r.Device, string(define.ValueOr(r.ShareID, ""))}
}

func idOfStatus(d resourcev1.AllocatedDeviceStatus) deviceID {
	return deviceID{d.Driver, d.Pool, d.Device, define.ValueOr(d.ShareID, "")}
}

func allocated(c *resourcev1.ResourceClaim) sets.Set[deviceID] {
	ids := sets.New[deviceID]()
	if c.Status.Allocation != nil {
		for _, r := range c.Status.Allocation.Devices.Results {
			ids.Insert(idOfResult(r))
		}
	}
	return ids
}

// dropDeallocated takes out what drivers said of devices that the claim no longer has: who deallocates them need not
// know of it.
func dropDeallocated(c, old *resourcev1.ResourceClaim) {
	gone := allocated(old).Difference(allocated(c))
	c.Status.Devices = slices.DeleteFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool { return gone.Has(idOfStatus(d)) })
	if len(c.Status.Devices) == 0 {
		c.Status.Devices = nil
	}
}

func validateClaimStatus(c, old *resourcev1.ResourceClaim) field.ErrorList {
	status := &c.Status
	errs := each(claimStatusPath.Child("reservedFor"), unlessTooMany(status.ReservedFor, resourcev1.ResourceClaimReservedForMaxSize), validateConsumer)
	devices := allocated(c)
	errs = append(errs, each(claimStatusPath.Child("devices"), status.Devices, func(at *field.Path, d resourcev1.AllocatedDeviceStatus) field.ErrorList {
		return validateDeviceStatus(at, &d, devices)
	})...)
	errs = append(errs, validateReservation(c, old)...)
	if status.Allocation != nil && old.Status.Allocation == nil {
		errs = append(errs, validateAllocation(claimStatusPath.Child("allocation"), status.Allocation, namesOf(c.Spec.Devices.Requests))...)
	}
	return append(errs, tagsOfClaimStatus(claimStatusPath, status, &old.Status)...)
}

func validateConsumer(at *field.Path, ref resourcev1.ResourceClaimConsumerReference) field.ErrorList {
	errs := validate.Required(at.Child("resource"), ref.Resource)
	errs = append(errs, validate.Required(at.Child("name"), ref.Name)...)
	return append(errs, validate.Required(at.Child("uid"), string(ref.UID))...)
}

// validateReservation: only what is allocated is reserved, and for no others once the claim is deleted.
func validateReservation(c, old *resourcev1.ResourceClaim) field.ErrorList {
	at := claimStatusPath.Child("reservedFor")
	switch {
	case len(c.Status.ReservedFor) == 0:
	case c.Status.Allocation == nil:
		return field.ErrorList{field.Forbidden(at, "may not be specified when `allocated` is not set")}
	case c.DeletionTimestamp != nil && !sets.New(old.Status.ReservedFor...).HasAll(c.Status.ReservedFor...):
		return field.ErrorList{field.Forbidden(at, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")}
	}
	return nil
}

func validateAllocation(at *field.Path, a *resourcev1.AllocationResult, names requestNames) field.ErrorList {
	devices := at.Child("devices")
	errs := each(devices.Child("results"), unlessTooMany(a.Devices.Results, resourcev1.AllocationResultsMaxSize),
		func(at *field.Path, r resourcev1.DeviceRequestAllocationResult) field.ErrorList {
			errs := validateReference(at.Child("request"), r.Request, names)
			errs = append(errs, validateLabel(at.Child("device"), r.Device)...)
			errs = append(errs, validateBindingConditions(at, r.BindingConditions, r.BindingFailureConditions)...)
			errs = append(errs, each(at.Child("tolerations"), r.Tolerations, validateToleration)...)
			return append(errs, validateSkipped(at.Child("skipNodeOperations"), r.SkipNodeOperations)...)
		})
	errs = append(errs, each(devices.Child("config"), unlessTooMany(a.Devices.Config, maxAllocatedConfig),
		func(at *field.Path, c resourcev1.DeviceAllocationConfiguration) field.ErrorList {
			return append(validateReferences(at.Child("requests"), c.Requests, names), validateConfiguration(at, c.DeviceConfiguration, false)...)
		})...)
	if a.NodeSelector != nil {
		errs = append(errs, podspec.ValidateNodeSelector(at.Child("nodeSelector"), a.NodeSelector)...)
	}
	return errs
}

// maxAllocatedConfig: configuration comes from a class and from a claim.
const maxAllocatedConfig = 2 * resourcev1.DeviceConfigMaxSize

// validateBindingConditions checks the conditions that devices wait for before a pod is bound, and those on which it is not.
func validateBindingConditions(at *field.Path, conditions, failures []string) field.ErrorList {
	conditionsAt, failuresAt := at.Child("bindingConditions"), at.Child("bindingFailureConditions")
	label := func(at *field.Path, name string) field.ErrorList { return metavalidation.ValidateLabelName(name, at) }
	errs := each(conditionsAt, unlessTooMany(conditions, resourcev1.BindingConditionsMaxSize), label)
	errs = append(errs, each(failuresAt, unlessTooMany(failures, resourcev1.BindingFailureConditionsMaxSize), label)...)
	shown := func(name string) any { return name }
	errs = append(errs, repeated(conditionsAt, conditions, itself[string], shown)...)
	seen := sets.New[string]()
	for i, name := range failures {
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(failuresAt.Index(i), name))
		}
		seen.Insert(name)
		if slices.Contains(conditions, name) {
			errs = append(errs, field.Invalid(failuresAt.Index(i), name, "bindingFailureConditions must not overlap with bindingConditions"))
		}
	}
	switch {
	case len(conditions) == 0 && len(failures) > 0:
		errs = append(errs, field.Invalid(conditionsAt, conditions, "bindingConditions are required to use bindingFailureConditions"))
	case len(failures) == 0 && len(conditions) > 0:
		errs = append(errs, field.Invalid(failuresAt, failures, "bindingFailureConditions are required to use bindingConditions"))
	}
	return errs
}

// validateSkipped: what a kubelet does not prepare, it must not unprepare.
func validateSkipped(at *field.Path, operations []resourcev1.SkipNodeOperation) field.ErrorList {
	if slices.Contains(operations, resourcev1.SkipNodeOperationNodePrepareResources) &&
		!slices.Contains(operations, resourcev1.SkipNodeOperationNodeUnprepareResources) && !slices.Contains(operations, resourcev1.SkipNodeOperationAll) {
		return field.ErrorList{field.Invalid(at, operations, "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped")}
	}
	return nil
}

func validateDeviceStatus(at *field.Path, d *resourcev1.AllocatedDeviceStatus, allocated sets.Set[deviceID]) field.ErrorList {
	errs := validateDriver(at.Child("driver"), d.Driver)
	errs = append(errs, validatePool(at.Child("pool"), d.Pool)...)
	errs = append(errs, validateLabel(at.Child("device"), d.Device)...)
	if id := idOfStatus(*d); !allocated.Has(id) {
		errs = append(errs, field.Invalid(at, id, "must be an allocated device in the claim"))
	}
	conditions := at.Child("conditions")
	errs = append(errs, tooMany(conditions, d.Conditions, resourcev1.AllocatedDeviceStatusMaxConditions)...)
	errs = append(errs, metavalidation.ValidateConditions(d.Conditions, conditions)...)
	if d.Data != nil && len(d.Data.Raw) > 0 {
		errs = append(errs, validateRaw(at.Child("data"), *d.Data, resourcev1.AllocatedDeviceStatusDataMaxLength)...)
	}
	if d.NetworkData != nil {
		errs = append(errs, each(at.Child("networkData", "ips"), unlessTooMany(d.NetworkData.IPs, resourcev1.NetworkDeviceDataMaxIPs), validation.IsValidInterfaceAddress)...)
	}
	return errs
}
