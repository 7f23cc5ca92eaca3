package cel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/sets"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Compiler compiles the expressions of one policy, which share variables. It is used by one
// goroutine.
type Compiler struct {
	mode      Mode
	variables []variable
	places    map[string]int // of variables, by name
	work      int
}

// variable is one of the variables of a policy.
type variable struct {
	name string
	// program is nil if the expression does not compile.
	program *Program
	err     error
	kind    *apiservercel.DeclType
}

// growth is that of the variable's value; see maxGrowth.
func (v *variable) growth() int {
	if v.program == nil {
		return 1
	}
	return v.program.growth
}

// NewCompiler returns a Compiler without variables.
func NewCompiler(mode Mode) *Compiler { return &Compiler{mode: mode} }

// Declare compiles a variable, which the expressions that are compiled later may use. If it
// does not compile, they may use it too, and their evaluation fails where they do.
func (c *Compiler) Declare(name, expression string, declarations Declarations) error {
	program, err := c.Compile(expression, declarations)
	v := variable{name: name, program: program, err: err, kind: apiservercel.DynType}
	if err == nil {
		v.kind = declTypeOf(program.result)
	}
	if before, ok := c.places[name]; ok {
		c.variables[before] = variable{} // whose name no expression has
	}
	if c.places == nil {
		c.places = map[string]int{}
	}
	c.places[name] = len(c.variables)
	c.variables = append(c.variables, v)
	return err
}

// Work is how much work the compilation of all expressions has made, of which no other policy had an equal one.
func (c *Compiler) Work() int { return c.work }

// Variables returns the declared variables, for an Evaluation.
func (c *Compiler) Variables() Variables { return Variables{list: slices.Clip(c.variables)} }

// Compile compiles an expression, which must be of one of the types, if there are any. The
// error is a *apiservercel.Error. A Program is shared by all equal expressions.
func (c *Compiler) Compile(expression string, declarations Declarations, results ...*cel.Type) (*Program, error) {
	used := c.usedBy(expression)
	key := programKey(expression, declarations, c.mode, used)
	compiling.Lock()
	defer compiling.Unlock()
	program := sharedProgram(key)
	if program == nil {
		var err error
		if program, err = c.compile(expression, declarations, used); err != nil {
			return nil, err
		}
		shareProgram(key, program)
	}
	if len(results) > 0 && !slices.ContainsFunc(results, func(t *cel.Type) bool { return program.result.IsExactType(t) || cel.AnyType.IsExactType(t) }) {
		return nil, &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: mismatch(program.result, results)}
	}
	return program, nil
}

func mismatch(got *cel.Type, want []*cel.Type) string {
	if len(want) == 1 {
		return fmt.Sprintf("must evaluate to %v but got %v", want[0], got)
	}
	return fmt.Sprintf("must evaluate to one of %v but got %v", want, got)
}

// usedBy returns the variables that an expression can use: those whose names are in it.
func (c *Compiler) usedBy(expression string) []variable {
	if !strings.Contains(expression, "variables") {
		return nil
	}
	found := sets.New[int]()
	for name := range strings.FieldsFuncSeq(expression, func(r rune) bool { return !inIdentifier(r) }) {
		if place, ok := c.places[name]; ok {
			found.Insert(place)
		}
	}
	var used []variable
	for _, place := range sets.List(found) {
		used = append(used, c.variables[place])
	}
	return used
}

// inIdentifier reports whether the name of a variable may have a character.
func inIdentifier(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// compile does what Compile says, without sharing. The caller holds compiling.
func (c *Compiler) compile(expression string, declarations Declarations, used []variable) (*Program, error) {
	env, err := envFor(declarations, c.mode)
	if err != nil {
		return nil, internalError("CEL environment", err)
	}
	clear(env.variables.Fields)
	for _, v := range used {
		env.variables.Fields[v.name] = apiservercel.NewDeclField(v.name, v.kind, true, nil, nil)
	}
	ast, work, issues := compile(env.cel, expression)
	c.work += work
	if issues != nil {
		return nil, &apiservercel.Error{
			Type: apiservercel.ErrorTypeInvalid, Detail: "compilation failed: " + issues.String(), Cause: apiservercel.NewCompilationError(issues),
		}
	}
	grown := make(map[string]int, len(used))
	for _, v := range used {
		grown[v.name] = v.growth()
	}
	growth, tooLarge := checkGrowth(ast, grown)
	if tooLarge != nil {
		return nil, &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: "compilation failed: " + tooLarge.Error()}
	}
	tree, err := env.planner.NewInterpretable(ast.NativeRep(), env.options...)
	if err != nil {
		return nil, internalError("program instantiation failed", err)
	}
	return newProgram(tree, ast.OutputType(), growth)
}

func internalError(what string, err error) error {
	return &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: what + ": " + err.Error(), Cause: err}
}

// declTypeOf returns the type of a variable whose expression has a type.
func declTypeOf(t *cel.Type) *apiservercel.DeclType {
	for _, known := range []*apiservercel.DeclType{
		apiservercel.AnyType, apiservercel.BoolType, apiservercel.BytesType, apiservercel.DoubleType, apiservercel.DurationType,
		apiservercel.IntType, apiservercel.NullType, apiservercel.StringType, apiservercel.TimestampType, apiservercel.UintType,
	} {
		if known.CelType() == t {
			return known
		}
	}
	if !t.HasTrait(traits.ContainerType) || !t.HasTrait(traits.IndexerType) {
		return apiservercel.DynType
	}
	switch p := t.Parameters(); len(p) {
	case 1:
		return apiservercel.NewListType(declTypeOf(p[0]), -1)
	case 2:
		if len(p[0].Parameters()) > 0 {
			return apiservercel.DynType // no map has such keys; see maxComputedMaps
		}
		return apiservercel.NewMapType(declTypeOf(p[0]), declTypeOf(p[1]), -1)
	default:
		return apiservercel.DynType
	}
}
