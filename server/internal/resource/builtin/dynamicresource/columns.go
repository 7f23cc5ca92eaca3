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
	return columns.Table(func(r *resourcev1.DeviceTaintRule, now time.Time) []any {
		taint, added := &r.Spec.Taint, columns.Unknown
		if taint.TimeAdded != nil {
			added = columns.Since(*taint.TimeAdded, now)
		}
		return []any{r.Name, taint.Key, taint.Value, string(taint.Effect), added, columns.Since(r.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Key", "The taint's key."),
		columns.Text("Value", "The taint's value."),
		columns.Text("Effect", "What becomes of claims that do not tolerate the taint."),
		columns.Text("TimeAdded", "The time since the taint was added."),
		columns.AgeColumn,
	)
}

func resourceClaimLayout() columns.Layout {
	return columns.Table(func(c *resourcev1.ResourceClaim, now time.Time) []any {
		return []any{c.Name, claimState(c), columns.Since(c.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("State", "Whether the claim is pending, allocated, reserved or deleted."), columns.AgeColumn)
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
	return columns.Table(func(s *resourcev1.ResourceSlice, now time.Time) []any {
		return []any{s.Name, columns.ValueOr(s.Spec.NodeName, ""), s.Spec.Driver, s.Spec.Pool.Name, columns.Since(s.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Node", "The node that the devices are on."),
		columns.Text("Driver", "The driver that offers the devices."),
		columns.Text("Pool", "The pool that the devices belong to."),
		columns.AgeColumn,
	)
}
