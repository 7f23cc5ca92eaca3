package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DeviceClaims are the claims of devices.
var DeviceClaims = schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceclaims"}

// deviceKind counts resourceclaims and the devices of each class that they may get, as in
// gpu.deviceclass.resource.k8s.io/devices.
//
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-for-resource-claims
type deviceKind struct{}

func (deviceKind) tracks(name corev1.ResourceName) bool {
	return name == CountName(DeviceClaims) || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass)
}

// usage: of alternatives each class counts with the most that one of them asks for.
func (deviceKind) usage(obj any, _ time.Time) corev1.ResourceList {
	used := corev1.ResourceList{CountName(DeviceClaims): one()}
	claim, ok := obj.(*resourcev1.ResourceClaim)
	if !ok {
		return used
	}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		most := map[string]int64{}
		if exactly := request.Exactly; exactly != nil && len(request.FirstAvailable) == 0 {
			most[exactly.DeviceClassName] = devices(exactly.AllocationMode, exactly.Count)
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			most[sub.DeviceClassName] = max(most[sub.DeviceClassName], devices(sub.AllocationMode, sub.Count))
		}
		for class, n := range most {
			Add(used, corev1.ResourceList{corev1.ResourceName(class + corev1.ResourceClaimsPerClass): count(int(n))})
		}
	}
	return used
}

// devices returns how many devices a request may get.
func devices(mode resourcev1.DeviceAllocationMode, exactly int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return exactly
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	}
	return 0
}

// inScope: no scope is about claims of devices.
func (deviceKind) inScope(any, corev1.ScopedResourceSelectorRequirement) bool { return false }

func (deviceKind) missing(any, []corev1.ResourceName) error { return nil }
