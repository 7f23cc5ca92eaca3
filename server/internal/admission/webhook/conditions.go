package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// compileConditions returns the match conditions of a webhook, nil if it has none. One that
// does not compile is an error of each evaluation.
func compileConditions(s spec, kind string) *expressions.Conditions {
	labels := expressions.ConditionLabels{Name: s.Name, Kind: "webhook", Type: kind}
	return expressions.CompileConditions(cel.NewCompiler(cel.Stored), s.MatchConditions, false, labels)
}

// matchesConditions evaluates the match conditions of a hook about the request as of v. If
// they have errors, a webhook whose failures are ignored is not called.
func (r *request) matchesConditions(ctx context.Context, h *hook, v *version) (bool, error) {
	conditions := h.conditions()
	if conditions == nil {
		return true, nil
	}
	matches, err := conditions.Match(ctx, r.input(v), string(operationOf(r.q.Operation)), r.plugin.opts.Conditions)
	if err != nil && h.ignore {
		return false, nil
	}
	return matches, err
}

// input returns the request as the expressions see it that are about v.
func (r *request) input(v *version) *cel.Input {
	if v.input != nil {
		return v.input
	}
	if r.authorizer == nil {
		r.authorizer = expressions.NewAuthorizer(r.plugin.opts.Authorizer)
	}
	v.input = &cel.Input{
		Object: expressions.Object(expressions.Named(v.shown, v.endpoint.Kind)), OldObject: expressions.Object(expressions.Named(v.shownOld, v.endpoint.Kind)),
		Request: expressions.Request(r.q, r.asked(), v.endpoint, r.user),
	}
	expressions.SetAuthorizer(v.input, r.authorizer, r.q, r.namespace(), r.user)
	return v.input
}

// operationOf names an operation as rules and reviews do.
func operationOf(o registry.Operation) admissionv1.OperationType {
	switch o {
	case registry.Create:
		return admissionv1.Create
	case registry.Update:
		return admissionv1.Update
	case registry.Delete, registry.Remove:
	}
	return admissionv1.Delete
}
