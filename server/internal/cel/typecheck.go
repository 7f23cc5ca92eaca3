package cel

import (
	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// TypeChecker checks the expressions of one policy against the types that its variables
// have for one kind of objects. An expression that compiles may fail there: it names a field
// that no object of the kind has. It is used by one goroutine.
type TypeChecker struct {
	env       *cel.Env
	variables *apiservercel.DeclType
	work      int
}

// Types are the types of object and oldObject, and of params. nil is any type. HasParams
// declares params.
type Types struct {
	Object, Params *apiservercel.DeclType
	HasParams      bool
}

// NewTypeChecker returns a TypeChecker without variables.
func NewTypeChecker(types Types) (*TypeChecker, error) {
	namespace, request := plugincel.BuildNamespaceType(), plugincel.BuildRequestType()
	variables := apiservercel.NewObjectType(variablesType, map[string]*apiservercel.DeclField{})
	declared := []*apiservercel.DeclType{namespace, request, variables}
	typeOf := func(t *apiservercel.DeclType) *cel.Type {
		if t == nil {
			return cel.DynType
		}
		declared = append(declared, t)
		return t.CelType()
	}
	object := typeOf(types.Object)
	options := []cel.EnvOption{
		cel.Variable(plugincel.ObjectVarName, object), cel.Variable(plugincel.OldObjectVarName, object),
		cel.Variable(plugincel.NamespaceVarName, namespace.CelType()), cel.Variable(plugincel.RequestVarName, request.CelType()),
		cel.Variable(plugincel.VariableVarName, variables.CelType()),
		cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType), cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType),
	}
	if types.HasParams {
		options = append(options, cel.Variable(plugincel.ParamsVarName, typeOf(types.Params)))
	}
	set, err := baseEnv().Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options, DeclTypes: declared,
	})
	if err != nil {
		return nil, err
	}
	env, err := set.Env(Stored)
	return &TypeChecker{env: env, variables: variables}, err
}

// Work is how much work the compiler has made until now, as Compiler.Work.
func (c *TypeChecker) Work() int { return c.work }

// Declare adds a variable. If its expression has no type, it may be anything.
func (c *TypeChecker) Declare(name, expression string) {
	kind := apiservercel.DynType
	if ast, issues := c.compile(expression); issues == nil {
		kind = declTypeOf(ast.OutputType())
	}
	c.variables.Fields[name] = apiservercel.NewDeclField(name, kind, true, nil, nil)
}

// Check returns what is wrong with an expression, or an empty string.
func (c *TypeChecker) Check(expression string) string {
	if _, issues := c.compile(expression); issues != nil {
		return issues.String()
	}
	return ""
}

func (c *TypeChecker) compile(expression string) (*cel.Ast, *cel.Issues) {
	ast, work, issues := compile(c.env, expression)
	c.work += work
	return ast, issues
}
