package scheduling

import (
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(schedulingv1.SchemeGroupVersion, "PriorityClass", priorityClassLayout())
}

func priorityClassLayout() columns.Layout {
	class := schedulingv1.PriorityClass{}.SwaggerDoc()
	return columns.Table(func(c *schedulingv1.PriorityClass, now time.Time) []any {
		return []any{
			c.Name, int64(c.Value), c.GlobalDefault, columns.Since(c.CreationTimestamp, now),
			string(columns.ValueOr(c.PreemptionPolicy, "")),
		}
	},
		columns.NameColumn,
		columns.Integer("Value", class["value"]),
		columns.Boolean("Global-Default", class["globalDefault"]),
		columns.AgeColumn,
		columns.Text("PreemptionPolicy", class["preemptionPolicy"]),
	)
}
