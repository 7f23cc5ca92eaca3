package dynamicresource

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// adminAccess is what a field with which an administrator looks at devices that others use needs.
func adminAccess(at *field.Path) *resource.NeededLabel {
	const label = resourcev1.DRAAdminNamespaceLabelKey
	return &resource.NeededLabel{
		Field: at.Child("adminAccess"), Label: label, For: "admin access",
		Missing: "admin access to devices requires the `" + label + ": true` label on the containing namespace",
	}
}

// adminAccessOfRequests: the path is kube-apiserver's, of claims as of templates.
func adminAccessOfRequests(requests []resourcev1.DeviceRequest) *resource.NeededLabel {
	for i, r := range requests {
		if r.Exactly != nil && define.ValueOr(r.Exactly.AdminAccess, false) {
			return adminAccess(validate.SpecPath.Child("devices", "requests").Index(i))
		}
	}
	return nil
}

// adminAccessOfClaim: of a claim that exists, its status counts, unless it has had admin access before.
func adminAccessOfClaim(c, old *resourcev1.ResourceClaim) *resource.NeededLabel {
	if old == nil {
		return adminAccessOfRequests(c.Spec.Devices.Requests)
	}
	if resultWithAdminAccess(old) >= 0 {
		return nil
	}
	if i := resultWithAdminAccess(c); i >= 0 {
		return adminAccess(claimStatusPath.Child("allocation", "devices", "results").Index(i))
	}
	return nil
}

// resultWithAdminAccess returns the index of the first result of a claim's allocation with admin access; -1 for none.
func resultWithAdminAccess(c *resourcev1.ResourceClaim) int {
	if c.Status.Allocation == nil {
		return -1
	}
	return slices.IndexFunc(c.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return define.ValueOr(r.AdminAccess, false)
	})
}
