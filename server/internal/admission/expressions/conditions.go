package expressions

import (
	"context"
	"errors"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/levelwire/levelwire/server/internal/cel"
)

// Conditions are the match conditions of one webhook or policy. They are immutable and safe
// for concurrent use. A nil *Conditions has none.
type Conditions struct {
	list   []Expression
	labels ConditionLabels
}

// ConditionLabels name Conditions in metrics.
type ConditionLabels struct {
	Name string // of the webhook or policy
	Kind string // webhook or policy
	Type string // admit or validate, validating for webhooks
}

// CompileConditions compiles match conditions, which may use params if the policy has any.
func CompileConditions(c *cel.Compiler, conditions []admissionv1.MatchCondition, hasParams bool, labels ConditionLabels) *Conditions {
	if len(conditions) == 0 {
		return nil
	}
	compiled := &Conditions{labels: labels, list: make([]Expression, len(conditions))}
	for i, m := range conditions {
		compiled.list[i] = Compile(c, m.Expression, cel.Declarations{Authorizer: true, Params: hasParams}, celgo.BoolType)
	}
	return compiled
}

// Match reports whether all conditions are true for an operation that input shows. One that
// is false decides, whatever errors the others have. All together may cost what
// kube-apiserver lets them cost. metrics may be nil.
func (c *Conditions) Match(ctx context.Context, input *cel.Input, operation string, metrics *ConditionMetrics) (bool, error) {
	if c == nil {
		return true, nil
	}
	began := time.Now()
	matches, err := c.match(ctx, input)
	metrics.observe(c.labels, operation, time.Since(began), matches, err)
	return matches, err
}

func (c *Conditions) match(ctx context.Context, input *cel.Input) (bool, error) {
	evaluation := cel.NewEvaluation(cel.Variables{}, input)
	evaluation.SetBudget(celconfig.RuntimeCELCostBudgetMatchConditions)
	var errs []error
	for i := range c.list {
		value, err := c.list[i].Evaluate(ctx, evaluation)
		switch {
		case errors.Is(err, cel.ErrBudget):
			return false, err
		case err != nil:
			errs = append(errs, err)
		case value == types.False:
			return false, nil
		}
	}
	if len(errs) > 0 {
		return false, utilerrors.NewAggregate(errs)
	}
	return true, nil
}
