package columns

import (
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
)

func schedulingGroup(all layouts) {
	all.add(schedulingv1.SchemeGroupVersion, "PriorityClass", priorityClasses())
}

func priorityClasses() layout {
	return table(func(c *schedulingv1.PriorityClass, now time.Time) []any {
		return []any{
			c.Name, int64(c.Value), c.GlobalDefault, since(c.CreationTimestamp, now),
			string(value(c.PreemptionPolicy, "")),
		}
	},
		nameColumn,
		integer("Value", "The priority of the pods of the class."),
		boolean("Global-Default", "Whether pods without a class get this one."),
		ageColumn,
		text("PreemptionPolicy", "Whether pods of the class may displace others."),
	)
}
