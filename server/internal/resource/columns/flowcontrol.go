package columns

import (
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

func flowcontrolGroup(all layouts) {
	gv := flowcontrolv1.SchemeGroupVersion
	all.add(gv, "FlowSchema", flowSchemas())
	all.add(gv, "PriorityLevelConfiguration", priorityLevels())
}

func flowSchemas() layout {
	return table(func(s *flowcontrolv1.FlowSchema, now time.Time) []any {
		method := none
		if m := s.Spec.DistinguisherMethod; m != nil {
			method = string(m.Type)
		}
		typeOf := func(c *flowcontrolv1.FlowSchemaCondition) flowcontrolv1.FlowSchemaConditionType { return c.Type }
		missing := "?"
		if c := condition(s.Status.Conditions, typeOf, flowcontrolv1.FlowSchemaConditionDangling); c != nil {
			missing = string(c.Status)
		}
		return []any{
			s.Name, s.Spec.PriorityLevelConfiguration.Name, int64(s.Spec.MatchingPrecedence), method,
			since(s.CreationTimestamp, now), missing,
		}
	},
		nameColumn,
		text("PriorityLevel", "The priority level that matching requests get."),
		text("MatchingPrecedence", "The order in which schemas are tried, lowest first."),
		text("DistinguisherMethod", "What separates one flow from another."),
		ageColumn,
		text("MissingPL", "Whether the priority level does not exist."),
	)
}

func priorityLevels() layout {
	return table(func(p *flowcontrolv1.PriorityLevelConfiguration, now time.Time) []any {
		var shares, queues, hand, length any = none, none, none, none
		if limited := p.Spec.Limited; limited != nil {
			shares = int64(value(limited.NominalConcurrencyShares, 0))
			if q := limited.LimitResponse.Queuing; q != nil {
				queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
			}
		}
		return []any{p.Name, string(p.Spec.Type), shares, queues, hand, length, since(p.CreationTimestamp, now)}
	},
		nameColumn,
		text("Type", "Whether the level limits requests."),
		text("NominalConcurrencyShares", "The level's share of all requests at a time."),
		text("Queues", "The number of queues."),
		text("HandSize", "The number of queues that one flow is spread over."),
		text("QueueLengthLimit", "The number of requests that wait in one queue at most."),
		ageColumn,
	)
}
