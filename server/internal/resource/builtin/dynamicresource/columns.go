package dynamicresource

import (
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := resourcev1.SchemeGroupVersion
	all.Add(gv, "DeviceClass", columns.NameAndAge())
	all.Add(gv, "DeviceTaintRule", deviceTaintRuleLayout())
	all.Add(gv, "ResourceClaim", resourceClaimLayout())
	all.Add(gv, "ResourceClaimTemplate", columns.NameAndAge())
	all.Add(gv, "ResourceSlice", resourceSliceLayout())
}

func deviceTaintRuleLayout() columns.Layout {
	taint := resourcev1.DeviceTaint{}.SwaggerDoc()
	return columns.Table(func(r *resourcev1.DeviceTaintRule, now time.Time) []any {
		taint, added := &r.Spec.Taint, columns.Unknown
		if taint.TimeAdded != nil {
			added = columns.Since(*taint.TimeAdded, now)
		}
		return []any{r.Name, taint.Key, taint.Value, string(taint.Effect), added, columns.Since(r.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Key", taint["key"]),
		columns.Text("Value", taint["value"]),
		columns.Text("Effect", taint["effect"]),
		columns.Text("TimeAdded", taint["timeAdded"]),
		columns.AgeColumn,
	)
}

func resourceClaimLayout() columns.Layout {
	return columns.Table(func(c *resourcev1.ResourceClaim, now time.Time) []any {
		return []any{c.Name, claimState(c), columns.Since(c.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("State", "A summary of the current state (allocated, pending, reserved, etc.)."), columns.AgeColumn)
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

func resourceSliceLayout() columns.Layout {
	spec := resourcev1.ResourceSliceSpec{}.SwaggerDoc()
	return columns.Table(func(s *resourcev1.ResourceSlice, now time.Time) []any {
		return []any{s.Name, columns.ValueOr(s.Spec.NodeName, ""), s.Spec.Driver, s.Spec.Pool.Name, columns.Since(s.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Node", spec["nodeName"]),
		columns.Text("Driver", spec["driver"]),
		columns.Text("Pool", resourcev1.ResourcePool{}.SwaggerDoc()["name"]),
		columns.AgeColumn,
	)
}
