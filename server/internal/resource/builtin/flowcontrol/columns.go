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
	spec := flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()
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
		columns.Text("PriorityLevel", flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"]),
		columns.Text("MatchingPrecedence", spec["matchingPrecedence"]),
		columns.Text("DistinguisherMethod", spec["distinguisherMethod"]),
		columns.AgeColumn,
		columns.Text("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
	)
}

func priorityLevelLayout() columns.Layout {
	queuing := flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()
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
		columns.Text("Type", flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"]),
		columns.Text("NominalConcurrencyShares", flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"]),
		columns.Text("Queues", queuing["queues"]),
		columns.Text("HandSize", queuing["handSize"]),
		columns.Text("QueueLengthLimit", queuing["queueLengthLimit"]),
		columns.AgeColumn,
	)
}
