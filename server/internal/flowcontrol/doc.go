// Package flowcontrol decides how important a request is, and which requests share what:
// FlowSchemas put it into a priority level and a flow, PriorityLevelConfigurations say
// what the levels have. Package fairqueue gives the seats out.
//
// Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ and
// KEP-1040. docs/operators/fairness.md is the operator's view.
//
// Reading order: match.go, subjects.go, table.go, controller.go, condition.go, metrics.go, dump.go.
package flowcontrol
