package columns

import (
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// deviceGroup is resource.k8s.io, dynamic resource allocation.
func deviceGroup(all layouts) {
	gv := resourcev1.SchemeGroupVersion
	all.add(gv, "DeviceClass", nameAndAge())
	all.add(gv, "ResourceClaim", resourceClaims())
	all.add(gv, "ResourceClaimTemplate", nameAndAge())
	all.add(gv, "ResourceSlice", resourceSlices())
}

func resourceClaims() layout {
	return table(func(c *resourcev1.ResourceClaim, now time.Time) []any {
		return []any{c.Name, claimState(c), since(c.CreationTimestamp, now)}
	}, nameColumn, text("State", "Whether the claim is pending, allocated, reserved or deleted."), ageColumn)
}

func claimState(c *resourcev1.ResourceClaim) string {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	switch {
	case c.Status.Allocation != nil && len(c.Status.ReservedFor) > 0:
		states = append(states, "allocated", "reserved")
	case c.Status.Allocation != nil:
		states = append(states, "allocated")
	case c.DeletionTimestamp == nil:
		states = append(states, "pending")
	}
	return strings.Join(states, ",")
}

func resourceSlices() layout {
	return table(func(s *resourcev1.ResourceSlice, now time.Time) []any {
		return []any{s.Name, value(s.Spec.NodeName, ""), s.Spec.Driver, s.Spec.Pool.Name, since(s.CreationTimestamp, now)}
	},
		nameColumn,
		text("Node", "The node that the devices are on."),
		text("Driver", "The driver that offers the devices."),
		text("Pool", "The pool that the devices belong to."),
		ageColumn,
	)
}
