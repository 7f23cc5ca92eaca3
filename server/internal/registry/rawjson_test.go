package registry

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestRawJSONOfEveryKind: wherever a kind has raw JSON, a number that no float64 holds is refused,
// unless the object has had one before.
func TestRawJSONOfEveryKind(t *testing.T) {
	opaque := func(raw runtime.RawExtension) resourcev1.DeviceConfiguration {
		return resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Parameters: raw}}
	}
	for name, with := range map[string]func(runtime.RawExtension) resource.Object{
		"ControllerRevision": func(raw runtime.RawExtension) resource.Object { return &appsv1.ControllerRevision{Data: raw} },
		"ResourceClaim": func(raw runtime.RawExtension) resource.Object {
			c := &resourcev1.ResourceClaim{}
			c.Spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{}, {DeviceConfiguration: opaque(raw)}}
			return c
		},
		"status of a ResourceClaim": func(raw runtime.RawExtension) resource.Object {
			return &resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Devices: []resourcev1.AllocatedDeviceStatus{{Data: &raw}}}}
		},
		"ResourceClaimTemplate": func(raw runtime.RawExtension) resource.Object {
			c := &resourcev1.ResourceClaimTemplate{}
			c.Spec.Spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: opaque(raw)}}
			return c
		},
		"DeviceClass": func(raw runtime.RawExtension) resource.Object {
			return &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: opaque(raw)}}}}
		},
	} {
		of := func(text string) resource.Object { return with(runtime.RawExtension{Raw: []byte(text)}) }
		for _, text := range []string{`1e400`, `{"a":-1e309}`, `{"a":[{"b":1e400}]}`} {
			for _, old := range []resource.Object{nil, of(`{"a":1}`)} {
				if err := checkRawJSON(of(text), old); !apierrors.IsBadRequest(err) {
					t.Errorf("%s with %s: %v", name, text, err)
				}
			}
			if err := checkRawJSON(of(text), of(text)); err != nil {
				t.Errorf("%s that has been stored with %s: %v", name, text, err)
			}
		}
		for _, text := range []string{``, `null`, `{"a":1e308}`, `{"a":123456789012345678901234567890,"b":1e-400}`} {
			if err := checkRawJSON(of(text), of(`1e400`)); err != nil {
				t.Errorf("%s with %s: %v", name, text, err)
			}
		}
	}
	if hasRawJSON(reflect.TypeFor[*corev1.Pod]()) {
		t.Error("every pod would be looked through")
	}
}
