package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func tagsOfClaimStatus(at *field.Path, status, old *resourcev1.ResourceClaimStatus) field.ErrorList {
	var errs field.ErrorList
	switch allocation := at.Child("allocation"); {
	case status.Allocation == nil || equality.Semantic.DeepEqual(status.Allocation, old.Allocation):
	case old.Allocation != nil:
		errs = append(errs, field.Invalid(allocation, nil, "field cannot be modified once set"))
	default:
		errs = append(errs, tagsOfAllocation(allocation.Child("devices"), &status.Allocation.Devices)...)
	}
	uid := func(ref resourcev1.ResourceClaimConsumerReference) types.UID { return ref.UID }
	errs = append(errs, set(at.Child("reservedFor"), status.ReservedFor, resourcev1.ResourceClaimReservedForMaxSize, uid)...)
	devices := at.Child("devices")
	errs = append(errs, repeated(devices, status.Devices, idOfStatus, func(d resourcev1.AllocatedDeviceStatus) any { return d })...)
	return append(errs, each(devices, status.Devices, func(at *field.Path, d resourcev1.AllocatedDeviceStatus) field.ErrorList {
		errs := present(uuid, at.Child("shareID"), d.ShareID)
		return append(errs, tagsOfNetwork(at.Child("networkData"), d.NetworkData)...)
	})...)
}

func tagsOfAllocation(at *field.Path, a *resourcev1.DeviceAllocationResult) field.ErrorList {
	errs := eachUpTo(at.Child("results"), a.Results, resourcev1.AllocationResultsMaxSize, func(at *field.Path, r resourcev1.DeviceRequestAllocationResult) field.ErrorList {
		errs := driverName.required(at.Child("driver"), r.Driver)
		errs = append(errs, poolName.required(at.Child("pool"), r.Pool)...)
		errs = append(errs, each(at.Child("tolerations"), r.Tolerations, tagsOfToleration)...)
		errs = append(errs, tagsOfBindingConditions(at, r.BindingConditions, r.BindingFailureConditions)...)
		errs = append(errs, present(uuid, at.Child("shareID"), r.ShareID)...)
		return append(errs, tagsOfSkipped(at.Child("skipNodeOperations"), r.SkipNodeOperations)...)
	})
	return append(errs, eachUpTo(at.Child("config"), a.Config, maxAllocatedConfig, func(at *field.Path, c resourcev1.DeviceAllocationConfiguration) field.ErrorList {
		errs := validate.OneOf(at.Child("source"), c.Source, resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim)
		errs = append(errs, tagsOfReferences(at, c.Requests)...)
		return append(errs, tagsOfConfiguration(at, c.DeviceConfiguration)...)
	})...)
}

func tagsOfBindingConditions(at *field.Path, conditions, failures []string) field.ErrorList {
	errs := tooMany(at.Child("bindingConditions"), conditions, resourcev1.BindingConditionsMaxSize)
	return append(errs, tooMany(at.Child("bindingFailureConditions"), failures, resourcev1.BindingFailureConditionsMaxSize)...)
}

func tagsOfSkipped(at *field.Path, operations []resourcev1.SkipNodeOperation) field.ErrorList {
	errs := repeated(at, operations, itself[resourcev1.SkipNodeOperation], func(o resourcev1.SkipNodeOperation) any { return o })
	return append(errs, each(at, operations, func(at *field.Path, o resourcev1.SkipNodeOperation) field.ErrorList {
		return validate.Supported(at, o, resourcev1.SkipNodeOperationAll, resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources)
	})...)
}

func tagsOfNetwork(at *field.Path, data *resourcev1.NetworkDeviceData) field.ErrorList {
	if data == nil {
		return nil
	}
	var errs field.ErrorList
	if most := resourcev1.NetworkDeviceDataInterfaceNameMaxLength; len(data.InterfaceName) > most {
		errs = append(errs, field.TooLong(at.Child("interfaceName"), "", most))
	}
	errs = append(errs, set(at.Child("ips"), data.IPs, resourcev1.NetworkDeviceDataMaxIPs, itself[string])...)
	if most := resourcev1.NetworkDeviceDataHardwareAddressMaxLength; len(data.HardwareAddress) > most {
		errs = append(errs, field.TooLong(at.Child("hardwareAddress"), "", most))
	}
	return errs
}
