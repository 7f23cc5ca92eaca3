package flowcontrol

import (
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := flowcontrolv1.SchemeGroupVersion
	all.Add(gv, "FlowSchema", flowSchemaLayout())
	all.Add(gv, "PriorityLevelConfiguration", priorityLevelLayout())
}

func flowSchemaLayout() columns.Layout {
	return columns.Table(func(s *flowcontrolv1.FlowSchema, now time.Time) []any {
		method := columns.None
		if m := s.Spec.DistinguisherMethod; m != nil {
			method = string(m.Type)
		}
		typeOf := func(c *flowcontrolv1.FlowSchemaCondition) flowcontrolv1.FlowSchemaConditionType { return c.Type }
		missing := "?"
		if c := columns.Condition(s.Status.Conditions, typeOf, flowcontrolv1.FlowSchemaConditionDangling); c != nil {
			missing = string(c.Status)
		}
		return []any{
			s.Name, s.Spec.PriorityLevelConfiguration.Name, int64(s.Spec.MatchingPrecedence), method,
			columns.Since(s.CreationTimestamp, now), missing,
		}
	},
		columns.NameColumn,
		columns.Text("PriorityLevel", "The priority level that matching requests get."),
		columns.Text("MatchingPrecedence", "The order in which schemas are tried, lowest first."),
		columns.Text("DistinguisherMethod", "What separates one flow from another."),
		columns.AgeColumn,
		columns.Text("MissingPL", "Whether the priority level does not exist."),
	)
}

func priorityLevelLayout() columns.Layout {
	return columns.Table(func(p *flowcontrolv1.PriorityLevelConfiguration, now time.Time) []any {
		var shares, queues, hand, length any = columns.None, columns.None, columns.None, columns.None
		if limited := p.Spec.Limited; limited != nil {
			shares = int64(columns.ValueOr(limited.NominalConcurrencyShares, 0))
			if q := limited.LimitResponse.Queuing; q != nil {
				queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
			}
		}
		return []any{p.Name, string(p.Spec.Type), shares, queues, hand, length, columns.Since(p.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Type", "Whether the level limits requests."),
		columns.Text("NominalConcurrencyShares", "The level's share of all requests at a time."),
		columns.Text("Queues", "The number of queues."),
		columns.Text("HandSize", "The number of queues that one flow is spread over."),
		columns.Text("QueueLengthLimit", "The number of requests that wait in one queue at most."),
		columns.AgeColumn,
	)
}
