package registry_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestAdminAccess: devices that others use are looked at from namespaces that allow it by a label.
func TestAdminAccess(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	lookup := func(group, plural string) registry.Registry {
		r, ok := f.Lookup(group, "v1", plural)
		if !ok {
			t.Fatalf("%s are not served", plural)
		}
		return r
	}
	claims, templates, namespaces := lookup(resourcev1.GroupName, "resourceclaims"), lookup(resourcev1.GroupName, "resourceclaimtemplates"), lookup("", "namespaces")
	for name, labels := range map[string]map[string]string{"plain": nil, "admins": {resourcev1.DRAAdminNamespaceLabelKey: "true"}} {
		if _, err := namespaces.Create(t.Context(), "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, registry.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	spec := func(admin bool) resourcev1.ResourceClaimSpec {
		return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "a"}}, {Name: "b", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "b", AdminAccess: &admin}},
		}}}
	}
	const refusal = "requests[1].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
	for _, tt := range []struct {
		namespace string
		admin     bool
		refused   string
	}{{"plain", false, ""}, {"plain", true, "spec.devices." + refusal}, {"admins", true, ""}} {
		_, err := claims.Create(t.Context(), tt.namespace, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: spec(tt.admin)}, registry.WriteOptions{})
		_, ofTemplate := templates.Create(t.Context(), tt.namespace, &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec(tt.admin)}}, registry.WriteOptions{})
		for _, err := range []error{err, ofTemplate} {
			if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
				t.Errorf("in %s: %v", tt.namespace, err)
			}
		}
	}

	for namespace, refused := range map[string]string{"plain": "status.allocation.devices.results[0].adminAccess: Forbidden", "admins": ""} {
		admin := true
		_, err := claims.UpdateStatus(t.Context(), namespace, "a", func(current resource.Object) (resource.Object, error) {
			claim := current.DeepCopyObject().(*resourcev1.ResourceClaim)
			claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "b", Driver: "d", Pool: "p", Device: "d", AdminAccess: &admin},
			}}}
			return claim, nil
		}, registry.UpdateOptions{})
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("the status in %s: %v", namespace, err)
		}
	}
}
