package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

// Validate is the plugin ValidatingAdmissionPolicy: it refuses what a policy denies.
func (p *Policies) Validate(ctx context.Context, q *registry.Request) error {
	c, hooks, err := p.newCall(ctx, q, p.validating)
	if c == nil || err != nil {
		return err
	}
	v := validator{call: c}
	for _, h := range hooks {
		if err := v.validate(ctx, h); err != nil {
			return err
		}
	}
	return v.verdict(ctx)
}

// validator collects what the policies say of one request.
type validator struct {
	call     *call
	denied   []denial
	failures []failure
}

// denial is why a request is refused. binding is empty if it is the policy that is at fault.
type denial struct {
	policy, binding, message string
	reason                   metav1.StatusReason
}

// failure is an element of the audit annotation validation_failure.
type failure struct {
	Message           string                         `json:"message"`
	Policy            string                         `json:"policy"`
	Binding           string                         `json:"binding"`
	ExpressionIndex   int                            `json:"expressionIndex"`
	ValidationActions []admissionv1.ValidationAction `json:"validationActions"`
}

// misconfigured denies because a policy or binding cannot be applied, unless the policy
// ignores failures.
func (v *validator) misconfigured(p *policy, b *binding, err error) {
	if p.ignores {
		return
	}
	d := denial{policy: p.name, message: "failed to configure policy: " + err.Error()}
	if b != nil {
		d.binding, d.message = b.name, "failed to configure binding: "+err.Error()
	}
	v.denied = append(v.denied, d)
}

// validate asks one policy, for each of its bindings and parameters. An error refuses the
// request whatever the policy says of failures.
func (v *validator) validate(ctx context.Context, h *hook) error {
	c, p := v.call, h.policy
	if p.matchErr != nil {
		v.misconfigured(p, nil, p.matchErr)
		return nil
	}
	endpoint, matches, err := p.matcher.Match(ctx, &c.match, c)
	if err != nil {
		v.misconfigured(p, nil, err)
	}
	if !matches || err != nil {
		return nil
	}
	published := newAnnotations()
	for _, b := range h.bindings {
		if params, ok := v.bind(ctx, p, b); ok && len(params) > 0 {
			shown, err := c.view(ctx, endpoint)
			if err != nil {
				if apierrors.IsNotFound(err) {
					return err // of the namespace
				}
				v.misconfigured(p, b, fmt.Errorf("failed to convert object version: %w", err))
				continue
			}
			for i := range params {
				if err := ctx.Err(); err != nil {
					return err
				}
				param, err := params[i].object(ctx)
				if err != nil {
					v.misconfigured(p, b, err)
					break
				}
				v.evaluate(ctx, p, b, c.input(shown, param), published)
			}
		}
	}
	published.publish(ctx, p.name)
	return nil
}

// bind returns the parameters with which a policy is to be asked for a binding.
func (v *validator) bind(ctx context.Context, p *policy, b *binding) ([]param, bool) {
	if b.matchErr != nil {
		v.misconfigured(p, b, b.matchErr)
		return nil, false
	}
	_, matches, err := b.matcher.Match(ctx, &v.call.match, v.call)
	if err != nil {
		v.misconfigured(p, b, err)
	}
	if !matches || err != nil {
		return nil, false
	}
	params, err := v.call.paramsFor(ctx, p, b)
	if err != nil {
		v.misconfigured(p, b, err)
		return nil, false
	}
	return params, true
}

// evaluate asks a policy with one parameter.
func (v *validator) evaluate(ctx context.Context, p *policy, b *binding, input *cel.Input, published *annotations) {
	compiled := p.expressions()
	matches, err := compiled.conditions.Match(ctx, input, string(v.call.match.Operation), v.call.policies.conditions)
	if err != nil {
		v.failed(ctx, p, b, 0, err, 0)
		return
	}
	if !matches {
		return
	}
	evaluation := cel.NewEvaluation(compiled.variables, input)
	evaluation.SetBudget(celconfig.RuntimeCELCostBudget)
	for i := range compiled.validations {
		rule := &compiled.validations[i]
		began := time.Now()
		value, err := rule.Expression.Evaluate(ctx, evaluation)
		took := time.Since(began)
		switch {
		case err != nil:
			v.failed(ctx, p, b, i, err, took)
			if errors.Is(err, cel.ErrBudget) {
				return
			}
		case value != types.True:
			message, err := rule.explain(ctx, evaluation)
			if err != nil {
				v.failed(ctx, p, b, i, fmt.Errorf("failed messageExpression: %w", err), took)
				return
			}
			v.act(ctx, p, b, denial{p.name, b.name, message, rule.reason}, i, errNotTrue, took)
		}
	}
	evaluation.SetBudget(celconfig.RuntimeCELCostBudget)
	v.annotate(ctx, p, b, compiled.annotations, evaluation, published)
}

// failed applies the failure policy to an expression that could not be evaluated.
func (v *validator) failed(ctx context.Context, p *policy, b *binding, index int, err error, took time.Duration) {
	if p.ignores {
		v.call.policies.metrics.validated(p.name, b.name, err, "allow", took)
		return
	}
	v.act(ctx, p, b, denial{p.name, b.name, err.Error(), ""}, index, err, took)
}

// act does what a binding says about a validation that failed.
func (v *validator) act(ctx context.Context, p *policy, b *binding, d denial, index int, err error, took time.Duration) {
	for _, action := range b.actions {
		switch action {
		case admissionv1.Deny:
			v.denied = append(v.denied, d)
		case admissionv1.Warn:
			reporter.Warn(ctx, fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.name, b.name, d.message))
		case admissionv1.Audit:
			v.failures = append(v.failures, failure{d.message, p.name, b.name, index, b.actions})
		}
		v.call.policies.metrics.validated(p.name, b.name, err, strings.ToLower(string(action)), took)
	}
}

// explain returns the message for a validation that is false. The error says that the
// budget is exhausted; for every other error there is another message.
func (r *validation) explain(ctx context.Context, evaluation *cel.Evaluation) (string, error) {
	if r.messageExpression.Text != "" {
		value, err := r.messageExpression.Evaluate(ctx, evaluation)
		if errors.Is(err, cel.ErrBudget) {
			return "", err
		}
		if message, ok := value.(types.String); ok && err == nil {
			m := strings.TrimSpace(string(message))
			if m != "" && len(m) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(m, "\n") {
				return m, nil
			}
		}
	}
	if m := strings.TrimSpace(r.message); m != "" {
		return m, nil
	}
	return "failed expression: " + strings.TrimSpace(r.Text), nil
}

// annotations are the audit annotations of one policy: the distinct values of each key. There may be one of each of thousands
// of params.
type annotations struct {
	values map[string][]string
	seen   sets.Set[keyValue]
}

type keyValue struct{ key, value string }

func newAnnotations() *annotations {
	return &annotations{values: map[string][]string{}, seen: sets.New[keyValue]()}
}

func (a *annotations) add(key, value string) {
	if of := (keyValue{key, value}); value != "" && !a.seen.Has(of) {
		a.seen.Insert(of)
		a.values[key] = append(a.values[key], value)
	}
}

// maxAnnotation bounds the length of one value.
const maxAnnotation = 10 << 10

func (v *validator) annotate(ctx context.Context, p *policy, b *binding, list []annotation, evaluation *cel.Evaluation, published *annotations) {
	for i := range list {
		a := &list[i]
		began := time.Now()
		value, err := a.Expression.Evaluate(ctx, evaluation)
		if err != nil {
			if !p.ignores {
				// Not one of the binding's actions: the annotation was promised.
				v.denied = append(v.denied, denial{p.name, b.name, err.Error(), ""})
				v.call.policies.metrics.validated(p.name, b.name, err, "deny", time.Since(began))
			}
			if errors.Is(err, cel.ErrBudget) {
				return
			}
			continue
		}
		text, _ := value.(types.String) // or null
		trimmed := strings.TrimSpace(string(text))
		published.add(a.key, trimmed[:min(len(trimmed), maxAnnotation)])
	}
}

func (a *annotations) publish(ctx context.Context, policy string) {
	for key, values := range a.values {
		reporter.Annotate(ctx, policy+"/"+key, strings.Join(values, ", "))
	}
}

const (
	failureAnnotation = "validation.policy.admission.k8s.io/validation_failure"
	// maxFailures bounds the annotation to about 10 KB.
	maxFailures = 50
)

// verdict returns the error that refuses the request, or nil.
func (v *validator) verdict(ctx context.Context) error {
	if len(v.failures) > 0 {
		if value, err := json.Marshal(v.failures[:min(len(v.failures), maxFailures)]); err == nil {
			reporter.Annotate(ctx, failureAnnotation, string(value))
		}
	}
	if len(v.denied) == 0 {
		return nil
	}
	d := v.denied[0]
	message := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", d.policy, d.message)
	if d.binding != "" {
		message = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", d.policy, d.binding, d.message)
	}
	refused := v.call.request.Forbidden(errors.New(message))
	if d.reason == "" {
		d.reason = metav1.StatusReasonInvalid
	}
	refused.ErrStatus.Reason, refused.ErrStatus.Code = d.reason, codeOf(d.reason)
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Message: message})
	return refused
}

func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	default:
		return http.StatusUnprocessableEntity
	}
}
