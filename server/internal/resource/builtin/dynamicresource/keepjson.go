package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// keepOpaque keeps the parameters of a driver as they were written before, if they say the same.
func keepOpaque(c, old *resourcev1.OpaqueDeviceConfiguration) {
	if c != nil && old != nil {
		define.KeepJSON(&c.Parameters, old.Parameters)
	}
}

func keepParameters(claim, old *resourcev1.DeviceClaim) {
	for i := range min(len(claim.Config), len(old.Config)) {
		keepOpaque(claim.Config[i].Opaque, old.Config[i].Opaque)
	}
}

// keepJSONOfStatus keeps what a claim's status has of raw JSON: an allocation, once set, cannot
// change.
func keepJSONOfStatus(status, old *resourcev1.ResourceClaimStatus) {
	if a, b := status.Allocation, old.Allocation; a != nil && b != nil {
		for i := range min(len(a.Devices.Config), len(b.Devices.Config)) {
			keepOpaque(a.Devices.Config[i].Opaque, b.Devices.Config[i].Opaque)
		}
	}
	for i := range min(len(status.Devices), len(old.Devices)) {
		if a, b := status.Devices[i].Data, old.Devices[i].Data; a != nil && b != nil {
			define.KeepJSON(a, *b)
		}
	}
}
