package admissionregistration

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// The limits of kube-apiserver.
const (
	maxMatchConditions           = 64
	maxAuditAnnotations          = 20
	maxAuditAnnotationExpression = 5 * 1024
)

// The types that expressions may have.
var (
	jsonPatchType = celgo.ListType(celgo.ObjectType("JSONPatch"))
	objectType    = celgo.ObjectType("Object")
)

// expressions compiles the expressions of one object. Those that the object has had before
// may use what is not offered to new ones.
type expressions struct {
	compilers map[cel.Mode]*cel.Compiler
	before    sets.Set[string]
	params    bool
}

func newExpressions(hasParams bool, before ...string) *expressions {
	return &expressions{
		compilers: map[cel.Mode]*cel.Compiler{cel.New: cel.NewCompiler(cel.New), cel.Stored: cel.NewCompiler(cel.Stored)},
		before:    sets.New(before...), params: hasParams,
	}
}

// check compiles an expression that must be there, and says so with the name of its field.
func (e *expressions) check(path *field.Path, expression string, d cel.Declarations, types ...*celgo.Type) field.ErrorList {
	if strings.TrimSpace(expression) == "" {
		return field.ErrorList{field.Required(path, path.String()[strings.LastIndexByte(path.String(), '.')+1:]+" is not specified")}
	}
	return e.compile(path, expression, d, types...)
}

// compile compiles an expression that is there.
func (e *expressions) compile(path *field.Path, expression string, d cel.Declarations, types ...*celgo.Type) field.ErrorList {
	mode := cel.New
	if e.before.Has(expression) {
		mode = cel.Stored
	}
	if n := e.work(); n > cel.MaxWork && mode == cel.New {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
			"the expressions before this one take the compiler about %d steps, and all may take %d: remove some, or make them shorter", n, cel.MaxWork))}
	}
	d.Params = e.params
	_, err := e.compilers[mode].Compile(expression, d, types...)
	return compileErrors(path, expression, err)
}

// work is what the compilation of all expressions has taken until now.
func (e *expressions) work() (sum int) {
	for _, c := range e.compilers {
		sum += c.Work()
	}
	return sum
}

// checkTrimmed is check for an expression of which the space around it counts for nothing; that
// one is not there is said without a word.
func (e *expressions) checkTrimmed(path *field.Path, expression string, d cel.Declarations, types ...*celgo.Type) field.ErrorList {
	if expression = strings.TrimSpace(expression); expression == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return e.compile(path, expression, d, types...)
}

// compileErrors returns the error of a field whose expression does not compile.
func compileErrors(path *field.Path, expression string, err error) field.ErrorList {
	var failed *apiservercel.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && failed.Type == apiservercel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(path, expression, failed.Detail)}
	}
	return field.ErrorList{field.InternalError(path, err)}
}

var (
	celIdentifier = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")
	celReserved   = []string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while",
	}
)

// declare checks the variables, which the expressions that are checked later may use. Of two with the
// same name they use the second.
func (e *expressions) declare(path *field.Path, variables []admissionv1.Variable) field.ErrorList {
	var errs field.ErrorList
	for i, v := range variables {
		at := path.Index(i)
		switch {
		case strings.TrimSpace(v.Name) == "":
			errs = append(errs, field.Required(at.Child("name"), "name is not specified"))
		case !celIdentifier.MatchString(v.Name) || slices.Contains(celReserved, v.Name):
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		errs = append(errs, e.check(at.Child("expression"), v.Expression, cel.Declarations{Authorizer: true})...)
		if strings.TrimSpace(v.Expression) == "" {
			continue // kube-apiserver complains about its use, too
		}
		for _, c := range e.compilers {
			if e.work() > cel.MaxWork && !e.before.Has(v.Expression) {
				break // which is the error of what comes next
			}
			// An error is one of the list already.
			_ = c.Declare(v.Name, v.Expression, cel.Declarations{Params: e.params, Authorizer: true})
		}
	}
	return errs
}

// matchConditions checks conditions. They come before variables are declared, which they may not use.
func (e *expressions) matchConditions(path *field.Path, conditions []admissionv1.MatchCondition) field.ErrorList {
	var errs field.ErrorList
	if n := len(conditions); n > maxMatchConditions {
		errs = append(errs, field.TooMany(path, n, maxMatchConditions))
	}
	names := sets.New[string]()
	for i, c := range conditions {
		at := path.Index(i)
		errs = append(errs, e.checkTrimmed(at.Child("expression"), c.Expression, cel.Declarations{Authorizer: true}, celgo.BoolType)...)
		errs = append(errs, validate.RequiredSyntax(at.Child("name"), c.Name, validation.IsQualifiedName)...)
		if c.Name != "" && names.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names.Insert(c.Name)
	}
	return errs
}

// validationReasons are the reasons that a policy may refuse with.
var validationReasons = []metav1.StatusReason{
	metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge,
}

func (e *expressions) validations(path *field.Path, list []admissionv1.Validation) field.ErrorList {
	var errs field.ErrorList
	for i, v := range list {
		at := path.Index(i)
		errs = append(errs, e.check(at.Child("expression"), v.Expression, cel.Declarations{Authorizer: true}, celgo.BoolType)...)
		switch {
		case v.MessageExpression == "":
		case strings.TrimSpace(v.MessageExpression) == "":
			errs = append(errs, field.Invalid(at.Child("messageExpression"), v.MessageExpression, "must be non-empty if specified"))
		default:
			errs = append(errs, e.check(at.Child("messageExpression"), v.MessageExpression, cel.Declarations{}, celgo.StringType)...)
		}
		switch message := strings.TrimSpace(v.Message); {
		case v.Message != "" && message == "":
			errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must be non-empty if specified"))
		case strings.ContainsAny(message, "\r\n"):
			errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must not contain line breaks"))
		}
		if v.Reason != nil {
			errs = append(errs, validate.Supported(at.Child("reason"), *v.Reason, validationReasons...)...)
		}
	}
	return errs
}

func (e *expressions) auditAnnotations(path *field.Path, policy string, list []admissionv1.AuditAnnotation) field.ErrorList {
	var errs field.ErrorList
	if len(list) > maxAuditAnnotations {
		errs = append(errs, field.Invalid(path, list, fmt.Sprintf("must not have more than %d auditAnnotations", maxAuditAnnotations)))
	}
	keys := sets.New[string]()
	for i, a := range list {
		at := path.Index(i)
		if policy == "" {
			errs = append(errs, field.Invalid(at.Child("key"), a.Key, "requires metadata.name be non-empty"))
		} else {
			name := policy + "/" + a.Key
			errs = append(errs, validate.Invalid(at.Child("key"), name, validation.IsQualifiedName(name))...)
		}
		if n := len(strings.TrimSpace(a.ValueExpression)); n > maxAuditAnnotationExpression {
			errs = append(errs, field.Required(at.Child("valueExpression"), fmt.Sprintf("must not exceed %d bytes in length", maxAuditAnnotationExpression)))
		} else {
			errs = append(errs, e.check(at.Child("valueExpression"), a.ValueExpression, cel.Declarations{Authorizer: true}, celgo.StringType, celgo.NullType)...)
		}
		if keys.Has(a.Key) {
			errs = append(errs, field.Duplicate(at.Child("key"), a.Key))
		}
		keys.Insert(a.Key)
	}
	return errs
}

func (e *expressions) mutations(path *field.Path, list []admissionv1.Mutation) field.ErrorList {
	var errs field.ErrorList
	d := cel.Declarations{Authorizer: true, PatchTypes: true}
	for i, m := range list {
		at := path.Index(i)
		patch, apply := at.Child("jsonPatch"), at.Child("applyConfiguration")
		switch m.PatchType {
		case admissionv1.PatchTypeJSONPatch:
			if m.JSONPatch == nil {
				errs = append(errs, field.Required(patch, "must be specified when patchType is JSONPatch"))
			} else {
				errs = append(errs, e.checkTrimmed(patch.Child("expression"), m.JSONPatch.Expression, d, jsonPatchType)...)
			}
			if m.ApplyConfiguration != nil {
				errs = append(errs, field.Invalid(apply, "{applyConfiguration}", "must not be specified when patchType is JSONPatch"))
			}
		case admissionv1.PatchTypeApplyConfiguration:
			if m.ApplyConfiguration == nil {
				errs = append(errs, field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
			} else {
				errs = append(errs, e.checkTrimmed(apply.Child("expression"), m.ApplyConfiguration.Expression, d, objectType)...)
			}
			if m.JSONPatch != nil {
				errs = append(errs, field.Invalid(patch, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration"))
			}
		default:
			errs = append(errs, validate.OneOf(at.Child("patchType"), m.PatchType, admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch)...)
		}
	}
	return errs
}

// validatingExpressions checks what a policy evaluates. old is nil for a new one.
func validatingExpressions(p, old *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	var before []string
	if old != nil {
		for _, v := range old.Spec.Variables {
			before = append(before, v.Expression)
		}
		for _, v := range old.Spec.Validations {
			before = append(before, v.Expression, v.MessageExpression)
		}
		for _, a := range old.Spec.AuditAnnotations {
			before = append(before, a.ValueExpression)
		}
		before = append(before, conditionsOf(old.Spec.MatchConditions)...)
	}
	e := newExpressions(p.Spec.ParamKind != nil, before...)
	errs := e.matchConditions(validate.SpecPath.Child("matchConditions"), p.Spec.MatchConditions)
	errs = append(errs, e.declare(validate.SpecPath.Child("variables"), p.Spec.Variables)...)
	if len(p.Spec.Validations)+len(p.Spec.AuditAnnotations) == 0 {
		for _, name := range []string{"validations", "auditAnnotations"} {
			errs = append(errs, field.Required(validate.SpecPath.Child(name), "validations or auditAnnotations must contain at least one item"))
		}
	}
	errs = append(errs, e.validations(validate.SpecPath.Child("validations"), p.Spec.Validations)...)
	return append(errs, e.auditAnnotations(validate.SpecPath.Child("auditAnnotations"), p.Name, p.Spec.AuditAnnotations)...)
}

// mutatingExpressions is validatingExpressions for a MutatingAdmissionPolicy.
func mutatingExpressions(p, old *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	var before []string
	if old != nil {
		for _, v := range old.Spec.Variables {
			before = append(before, v.Expression)
		}
		for _, m := range old.Spec.Mutations {
			if m.ApplyConfiguration != nil {
				before = append(before, m.ApplyConfiguration.Expression)
			}
			if m.JSONPatch != nil {
				before = append(before, m.JSONPatch.Expression)
			}
		}
		before = append(before, conditionsOf(old.Spec.MatchConditions)...)
	}
	e := newExpressions(p.Spec.ParamKind != nil, before...)
	errs := e.matchConditions(validate.SpecPath.Child("matchConditions"), p.Spec.MatchConditions)
	errs = append(errs, e.declare(validate.SpecPath.Child("variables"), p.Spec.Variables)...)
	if len(p.Spec.Mutations) == 0 {
		errs = append(errs, field.Required(validate.SpecPath.Child("mutations"), "mutations must contain at least one item"))
	}
	errs = append(errs, e.mutations(validate.SpecPath.Child("mutations"), p.Spec.Mutations)...)
	return append(errs, validate.OneOf(validate.SpecPath.Child("reinvocationPolicy"), p.Spec.ReinvocationPolicy,
		admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)...)
}

func conditionsOf(list []admissionv1.MatchCondition) []string {
	var all []string
	for _, c := range list {
		all = append(all, strings.TrimSpace(c.Expression))
	}
	return all
}
