package policy

import (
	"strings"
	"sync"
	"sync/atomic"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/admission/rules"
	"github.com/levelwire/levelwire/server/internal/cel"
)

// policy is a policy of either kind. Its expressions are compiled ahead, or when a request
// matches it before that.
type policy struct {
	name    string
	params  *admissionv1.ParamKind
	ignores bool // failurePolicy Ignore
	// matcher is nil if matchErr is not.
	matcher  *rules.Matcher
	matchErr error
	// reinvoke: a mutating policy that wants to see what others have changed after it.
	reinvoke bool

	// compiling guards compile. A sync.Once would count a compilation that panicked as done.
	compiling sync.Mutex
	compile   func() *compiled // nil after the first call that returned
	compiled  atomic.Pointer[compiled]
}

// binding is a binding of either kind.
type binding struct {
	name, policy string
	params       *admissionv1.ParamRef
	actions      []admissionv1.ValidationAction
	matcher      *rules.Matcher // nil if matchErr is not
	matchErr     error
}

// compiled is the expressions of a policy.
type compiled struct {
	conditions  *expressions.Conditions
	variables   cel.Variables
	validations []validation
	annotations []annotation
	mutations   []mutation
}

type validation struct {
	expressions.Expression
	message string
	reason  metav1.StatusReason
	// messageExpression has no text if there is none.
	messageExpression expressions.Expression
}

type annotation struct {
	key string
	expressions.Expression
}

type mutation struct {
	kind admissionv1.PatchType
	expressions.Expression
}

// expressions returns what was compiled.
func (p *policy) expressions() *compiled {
	if c := p.compiled.Load(); c != nil {
		return c
	}
	p.compiling.Lock()
	defer p.compiling.Unlock()
	if c := p.compiled.Load(); c != nil {
		return c
	}
	c := p.compile()
	p.compiled.Store(c)
	p.compile = nil
	return c
}

func newValidatingPolicy(p *admissionv1.ValidatingAdmissionPolicy) *policy {
	spec := p.Spec
	made := newPolicy(p.Name, spec.ParamKind, spec.FailurePolicy, spec.MatchConstraints)
	made.compile = func() *compiled {
		c := newCompiler(p.Name, "validate", spec.ParamKind != nil)
		result := c.begin(spec.MatchConditions, spec.Variables)
		for _, v := range spec.Validations {
			compiled := validation{
				Expression: c.compile(v.Expression, cel.Declarations{Authorizer: true}, celgo.BoolType),
				message:    v.Message, reason: metav1.StatusReasonInvalid,
			}
			if v.Reason != nil {
				compiled.reason = *v.Reason
			}
			if strings.TrimSpace(v.MessageExpression) != "" {
				compiled.messageExpression = c.compile(v.MessageExpression, cel.Declarations{}, celgo.StringType)
			}
			result.validations = append(result.validations, compiled)
		}
		for _, a := range spec.AuditAnnotations {
			result.annotations = append(result.annotations, annotation{
				key: a.Key, Expression: c.compile(a.ValueExpression, cel.Declarations{Authorizer: true}, celgo.StringType, celgo.NullType),
			})
		}
		return result
	}
	return made
}

func newMutatingPolicy(p *admissionv1.MutatingAdmissionPolicy) *policy {
	spec := p.Spec
	made := newPolicy(p.Name, spec.ParamKind, spec.FailurePolicy, spec.MatchConstraints)
	made.reinvoke = spec.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy
	made.compile = func() *compiled {
		c := newCompiler(p.Name, "admit", spec.ParamKind != nil)
		result := c.begin(spec.MatchConditions, spec.Variables)
		for _, m := range spec.Mutations {
			d := cel.Declarations{Authorizer: true, PatchTypes: true}
			switch {
			case m.PatchType == admissionv1.PatchTypeJSONPatch && m.JSONPatch != nil:
				result.mutations = append(result.mutations, mutation{m.PatchType, c.compile(m.JSONPatch.Expression, d, celgo.ListType(celgo.ObjectType("JSONPatch")))})
			case m.PatchType == admissionv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
				result.mutations = append(result.mutations, mutation{m.PatchType, c.compile(m.ApplyConfiguration.Expression, d, celgo.ObjectType("Object"))})
			}
		}
		return result
	}
	return made
}

func newPolicy(name string, params *admissionv1.ParamKind, failure *admissionv1.FailurePolicyType, match *admissionv1.MatchResources) *policy {
	p := &policy{name: name, params: params, ignores: failure != nil && *failure == admissionv1.Ignore}
	p.matcher, p.matchErr = rules.New(match)
	return p
}

func newValidatingBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) *binding {
	made := newBinding(b.Name, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
	made.actions = b.Spec.ValidationActions
	return made
}

func newMutatingBinding(b *admissionv1.MutatingAdmissionPolicyBinding) *binding {
	return newBinding(b.Name, b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
}

func newBinding(name, policy string, params *admissionv1.ParamRef, match *admissionv1.MatchResources) *binding {
	b := &binding{name: name, policy: policy, params: params}
	b.matcher, b.matchErr = rules.New(match)
	return b
}

// compiler compiles the expressions of one policy.
type compiler struct {
	cel    *cel.Compiler
	params bool
	labels expressions.ConditionLabels
}

func newCompiler(name, phase string, params bool) *compiler {
	return &compiler{cel.NewCompiler(cel.Stored), params, expressions.ConditionLabels{Name: name, Kind: "policy", Type: phase}}
}

// begin compiles the match conditions, which have no variables, and then the variables.
func (c *compiler) begin(conditions []admissionv1.MatchCondition, variables []admissionv1.Variable) *compiled {
	result := &compiled{conditions: expressions.CompileConditions(c.cel, conditions, c.params, c.labels)}
	for _, v := range variables {
		// An error is that of the expressions that use the variable.
		_ = c.cel.Declare(v.Name, v.Expression, cel.Declarations{Params: c.params, Authorizer: true})
	}
	result.variables = c.cel.Variables()
	return result
}

func (c *compiler) compile(text string, d cel.Declarations, types ...*celgo.Type) expressions.Expression {
	d.Params = c.params
	return expressions.Compile(c.cel, text, d, types...)
}
