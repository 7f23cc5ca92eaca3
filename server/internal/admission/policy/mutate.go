package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/admission/rules"
	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// Mutate is the plugin MutatingAdmissionPolicy: it changes the object of a request as
// policies say, in the order of their names and of their bindings' names.
func (p *Policies) Mutate(ctx context.Context, q *registry.Request) error {
	if q.Object == nil {
		return nil
	}
	c, hooks, err := p.newCall(ctx, q, p.mutating)
	if c == nil || err != nil {
		return err
	}
	m := mutator{call: c}
	m.history, _ = q.Kept(pluginName).(*invocations)
	if m.history == nil {
		m.history = &invocations{before: map[invocationKey]struct{}{}, again: map[invocationKey]struct{}{}}
		q.Keep(pluginName, m.history)
	}
	if err := m.mutate(ctx, hooks); err != nil {
		return err
	}
	return m.verdict()
}

// pluginName is what the plugin keeps its history of a request by.
const pluginName = "MutatingAdmissionPolicy"

// mutator changes the object of one request.
type mutator struct {
	call    *call
	history *invocations
	denied  []mutationError
}

// invocation is a policy that is to change the object, for one binding and parameter.
type invocation struct {
	policy   *policy
	binding  *binding
	param    param
	endpoint rules.Endpoint
}

type invocationKey struct{ policy, binding, param string }

func (i *invocation) key() invocationKey {
	key := invocationKey{policy: i.policy.name, binding: i.binding.name}
	if i.param.read != nil {
		key.param = i.param.namespace + "/" + i.param.name
	}
	return key
}

// invocations remember between the two passes of a request which policies want to see
// what was changed after them.
type invocations struct {
	last   resource.Object // the object as the first pass has left it
	before map[invocationKey]struct{}
	again  map[invocationKey]struct{}
}

// changed says that all that came before have to be asked again.
func (h *invocations) changed() {
	maps.Copy(h.again, h.before)
	clear(h.before)
}

type mutationError struct {
	policy, binding string
	err             error
	reason          metav1.StatusReason
}

// Error implements error.
func (e *mutationError) Error() string {
	if e.binding == "" {
		return fmt.Sprintf("policy %q denied request: %v", e.policy, e.err)
	}
	return fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", e.policy, e.binding, e.err)
}

func (m *mutator) misconfigured(p *policy, b *binding, err error) {
	if p.ignores {
		return
	}
	e := mutationError{policy: p.name, err: fmt.Errorf("failed to configure policy: %w", err)}
	if b != nil {
		e.binding, e.err = b.name, fmt.Errorf("failed to configure binding: %w", err)
	}
	m.denied = append(m.denied, e)
}

// failed applies the failure policy to a mutation that could not be made.
func (m *mutator) failed(i *invocation, err error) {
	if !i.policy.ignores {
		m.denied = append(m.denied, mutationError{i.policy.name, i.binding.name, err, metav1.StatusReasonInvalid})
	}
}

// mutate finds what matches the object as it came, and lets each of them change it.
func (m *mutator) mutate(ctx context.Context, hooks []*hook) error {
	q := m.call.request
	var list []invocation
	for _, h := range hooks {
		list = append(list, m.invocationsOf(ctx, h)...)
	}
	if len(list) == 0 {
		return nil
	}
	if q.Reinvoked && !equality.Semantic.DeepEqual(m.history.last, q.Object) {
		m.history.changed()
	}
	for i := range list {
		if err := m.invoke(ctx, &list[i]); err != nil {
			return err
		}
	}
	m.history.last = q.Object.DeepCopyObject().(resource.Object)
	return nil
}

func (m *mutator) invocationsOf(ctx context.Context, h *hook) []invocation {
	c, p := m.call, h.policy
	if p.matchErr != nil {
		m.misconfigured(p, nil, p.matchErr)
		return nil
	}
	endpoint, matches, err := p.matcher.Match(ctx, &c.match, c)
	if err != nil {
		m.misconfigured(p, nil, err)
	}
	if !matches || err != nil {
		return nil
	}
	var list []invocation
	for _, b := range h.bindings {
		if b.matchErr != nil {
			m.misconfigured(p, b, b.matchErr)
			continue
		}
		_, matches, err := b.matcher.Match(ctx, &c.match, c)
		var params []param
		if err == nil && matches {
			params, err = c.paramsFor(ctx, p, b)
		}
		if err != nil {
			m.misconfigured(p, b, err)
			continue
		}
		for _, param := range params {
			list = append(list, invocation{p, b, param, endpoint})
		}
	}
	return list
}

// invoke lets one policy change the object. An error refuses the request whatever the
// policy says of failures.
func (m *mutator) invoke(ctx context.Context, i *invocation) error {
	c, key := m.call, i.key()
	view, err := c.view(ctx, i.endpoint)
	switch {
	case err == nil:
	case ctx.Err() != nil, apierrors.IsNotFound(err): // of the namespace
		return err
	default:
		m.misconfigured(i.policy, i.binding, fmt.Errorf("failed to convert object version: %w", err))
		return nil
	}
	compiled := i.policy.expressions()
	if err := ctx.Err(); err != nil {
		return err
	}
	param, err := i.param.object(ctx)
	if err != nil {
		m.misconfigured(i.policy, i.binding, err)
		return nil
	}
	matches, err := compiled.conditions.Match(ctx, c.input(view, param), string(c.match.Operation), c.policies.conditions)
	if err != nil {
		m.failed(i, err)
		return nil
	}
	if !matches {
		return nil
	}
	if _, again := m.history.again[key]; c.request.Reinvoked && !again {
		return nil
	}
	obj := view.obj
	for n := range compiled.mutations {
		began := time.Now()
		input := c.input(view, param)
		input.Object = expressions.Object(obj)
		changed, err := m.apply(ctx, &compiled.mutations[n], compiled.variables, input, obj, i.endpoint)
		c.policies.metrics.mutated(i.policy.name, i.binding.name, err, time.Since(began))
		if err != nil {
			m.failed(i, err)
			continue
		}
		obj = changed
	}
	if !equality.Semantic.DeepEqual(view.obj, obj) {
		if err := m.replace(ctx, obj, i.endpoint); err != nil {
			return err
		}
		m.history.changed()
		c.request.AskAgain()
	}
	if i.policy.reinvoke {
		m.history.before[key] = struct{}{}
	}
	return nil
}

// apply returns the object as one mutation changes it, with defaults.
func (m *mutator) apply(ctx context.Context, change *mutation, variables cel.Variables, input *cel.Input, obj resource.Object, endpoint rules.Endpoint) (resource.Object, error) {
	evaluation := cel.NewEvaluation(variables, input)
	evaluation.SetBudget(celconfig.RuntimeCELCostBudget)
	value, err := change.Expression.Evaluate(ctx, evaluation)
	if err != nil {
		return nil, err
	}
	res := m.call.policies.set.Resources().Lookup(endpoint.Resource.Group, endpoint.Resource.Version, endpoint.Resource.Resource)
	if res == nil {
		return nil, fmt.Errorf("%v is not served any more", endpoint.Resource)
	}
	p := patcher{obj: obj, kind: endpoint.Kind}
	if endpoint.Kind == res.GroupVersionKind() {
		p.resource = res
	}
	return p.patch(change.kind, value)
}

// replace puts a changed object in the place of the request's.
func (m *mutator) replace(ctx context.Context, obj resource.Object, from rules.Endpoint) error {
	c := m.call
	if from.Kind != c.request.Kind() {
		source := c.policies.set.Resources().Lookup(from.Resource.Group, from.Resource.Version, from.Resource.Resource)
		if source == nil {
			return apierrors.NewInternalError(fmt.Errorf("%v is not served any more", from.Resource))
		}
		var err error
		if obj, err = convert(ctx, obj, source, c.request.Resource); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to convert object: %w", err))
		}
	}
	if err := c.request.Replace(ctx, obj); err != nil {
		return err
	}
	return c.show()
}

// verdict returns the error that refuses the request, or nil.
func (m *mutator) verdict() error {
	if len(m.denied) == 0 {
		return nil
	}
	refused := m.call.request.Forbidden(errors.New("admission request denied by policy"))
	refused.ErrStatus.Message = m.denied[0].Error()
	if reason := m.denied[0].reason; reason != "" {
		refused.ErrStatus.Reason = reason
	}
	for i := range m.denied {
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Message: m.denied[i].Error()})
	}
	return refused
}
