package cel

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// Declarations says which variables and types an expression may use beside object,
// oldObject, request, namespaceObject and variables.
type Declarations struct {
	// Params declares params.
	Params bool
	// Authorizer declares authorizer and authorizer.requestResource.
	Authorizer bool
	// PatchTypes declares Object and its fields' types, JSONPatch, and jsonpatch.escapeKey.
	PatchTypes bool
}

// Mode says which functions an expression may use.
type Mode = environment.Type

// The modes: an expression that is stored already may use what any supported version of the
// server knows; a new one what the oldest of them knows.
const (
	Stored Mode = environment.StoredExpressions
	New    Mode = environment.NewExpressions
)

// env compiles and plans expressions with the same Declarations and Mode. Its Programs
// share the tables of functions and types.
type env struct {
	declarations Declarations
	mode         Mode

	// Guarded by compiling:
	cel       *cel.Env
	variables *apiservercel.DeclType // type of the variable named variables

	planner interpreter.Interpreter
	options []interpreter.PlannerOption
}

// compiling is held while an expression is compiled: the fields of env.variables are those
// of the policy whose expression it is.
var compiling sync.Mutex

var (
	envs    = map[envKey]*env{} // guarded by compiling
	baseEnv = sync.OnceValue(func() *environment.EnvSet {
		return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	})
)

type envKey struct {
	declarations Declarations
	mode         Mode
}

// envFor returns the shared environment. The caller holds compiling.
func envFor(declarations Declarations, mode Mode) (*env, error) {
	key := envKey{declarations, mode}
	if e := envs[key]; e != nil {
		return e, nil
	}
	e, err := newEnv(declarations, mode)
	if err != nil {
		return nil, err
	}
	envs[key] = e
	return e, nil
}

// variablesType is the type name of the variable named variables, as Kubernetes has it.
const variablesType = "kubernetes.variables"

func newEnv(declarations Declarations, mode Mode) (*env, error) {
	e := &env{declarations: declarations, mode: mode, variables: apiservercel.NewObjectType(variablesType, map[string]*apiservercel.DeclField{})}
	namespace, request := plugincel.BuildNamespaceType(), plugincel.BuildRequestType()
	options := []cel.EnvOption{
		cel.Variable(plugincel.ObjectVarName, cel.DynType),
		cel.Variable(plugincel.OldObjectVarName, cel.DynType),
		cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		cel.Variable(plugincel.RequestVarName, request.CelType()),
		cel.Variable(plugincel.VariableVarName, e.variables.CelType()),
	}
	if declarations.Params {
		options = append(options, cel.Variable(plugincel.ParamsVarName, cel.DynType))
	}
	if declarations.Authorizer {
		options = append(options,
			cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
			cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	}
	all := version.MajorMinor(1, 0) // older than every supported version
	set, err := baseEnv().Extend(environment.VersionedOptions{
		IntroducedVersion: all, EnvOptions: options, DeclTypes: []*apiservercel.DeclType{namespace, request, e.variables},
	})
	if err == nil && declarations.PatchTypes {
		set, err = set.Extend(environment.VersionedOptions{IntroducedVersion: all, EnvOptions: []cel.EnvOption{
			common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), library.JSONPatch(),
		}})
	}
	if err != nil {
		return nil, err
	}
	if e.cel, err = set.Env(mode); err != nil {
		return nil, err
	}
	return e, e.newPlanner()
}

// newPlanner makes what env.Program of cel-go makes for each Program: the dispatcher, which
// is larger than most expressions, and the options. TestSameAsLibrary compares the two.
func (e *env) newPlanner() error {
	dispatcher := interpreter.NewDispatcher()
	for _, f := range e.cel.Functions() {
		overloads, err := f.Bindings()
		if err != nil {
			return err
		}
		if err := dispatcher.Add(overloads...); err != nil {
			return err
		}
	}
	provider, adapter := e.cel.CELTypeProvider(), e.cel.CELTypeAdapter()
	e.planner = interpreter.NewInterpreter(dispatcher, e.cel.Container, provider, adapter, interpreter.NewAttributeFactory(e.cel.Container, adapter, provider))
	tracker, err := interpreter.NewCostTracker(costs{}, interpreter.PresenceTestHasCost(false), interpreter.CostTrackerLimit(celconfig.PerCallLimit))
	if err != nil {
		return err
	}
	e.options = []interpreter.PlannerOption{
		interpreter.CustomDecoratorV2(decorateOptional),
		interpreter.InterruptableEval(),
		interpreter.Optimize(),
		interpreter.CompileRegexConstants(library.FindRegexOptimization, library.FindAllRegexOptimization, interpreter.MatchesRegexOptimization),
		interpreter.CostObserver(interpreter.CostTrackerFactory(tracker.Clone)),
	}
	return nil
}
