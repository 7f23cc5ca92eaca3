package cel

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// expressions use what has a cost or an instruction of its own.
var expressions = []string{
	`true`, `object.spec.replicas <= 5`, `object.metadata.name.startsWith('web')`,
	`has(object.metadata.labels) && 'app' in object.metadata.labels`, `object.spec.missing`, `has(object.spec.missing)`,
	`object.spec.containers.all(c, c.image.matches('^registry/.*'))`, `object.spec.containers.exists_one(c, c.name == 'b')`,
	`object.spec.containers.map(c, c.name).join(',')`, `object.spec.containers.filter(c, has(c.image)).size() == 2`,
	`object.?spec.?missing.orValue('none')`, `object.?spec.?replicas.orValue(1/0)`, `optional.none().or(optional.of(3)).value()`, `optional.of(1).or(optional.of(1/0)).value()`,
	`optional.of(2).optMap(x, x * 2).orValue(0)`, `object.spec.missing.orValue(2)`,
	`'abc 123 def'.find('[0-9]+')`, `'abc 123 45'.findAll('[0-9]+')`, `object.metadata.name.find('[a-z]+')`, `'a,b,c'.split(',')`, `'abc'.replace('b', 'd').upperAscii()`,
	`[3, 1, 2].sort()`, `['c', 'a', 'b'].sort()`, `[1, 2, 2].distinct()`, `lists.range(5)`, `[1, 2, 3].reverse()`, `[[1], [2, 3]].flatten()`, `[[[1]], [[2, 3]]].flatten(2)`,
	`[1, 2, 3, 4].slice(1, 3)`, `object.spec.containers.sortBy(c, c.image).map(c, c.name)`, `[].sort()`, `[1, 2].sum()`, `[1, 2, 3].isSorted()`, `[1, 2].min()`,
	`sets.contains([1, 2, 3], [2])`, `sets.intersects([1, 2], [3])`, `sets.equivalent([1, 2], [2, 1, 1])`,
	`quantity('1Gi').isGreaterThan(quantity('500Mi'))`, `url('https://example.com:80/').getHost()`, `ip('10.0.0.1').family()`, `cidr('10.0.0.0/8').containsIP('10.1.2.3')`,
	`semver('1.2.3').isLessThan(semver('2.0.0'))`, `format.dns1123Label().validate('-a').hasValue()`, `isQuantity('x')`,
	`timestamp('2024-01-01T00:00:00Z').getFullYear()`, `duration('1h').getMinutes()`,
	`[1, 2, 3].all(i, v, i < v)`, `{'a': 1}.transformList(k, v, k)`, `{'b': 2}.exists(k, k == 'b')`,
	`object.spec.containers[5].name`, `1 / 0 == 1`, `type(object.spec.replicas) == int`, `string(object.spec.replicas) + 'x'`, `[dyn(1), dyn('a')].exists(x, x == 'a')`,
	`params == null ? 'none' : params.data.max`, `request.operation == 'CREATE' && request.userInfo.username == 'me'`, `namespaceObject.metadata.labels['env'] == 'prod'`,
	`oldObject == null`, `object.spec.containers.exists(c, c.securityContext.privileged == true)`, `b'abc' == b'abc'`,
	`[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, a * b * c * d * e))))).size()`,
}

func testInput() *Input {
	native := types.DefaultTypeAdapter.NativeToValue
	return &Input{
		Object: native(map[string]any{
			"metadata": map[string]any{"name": "web-1", "labels": map[string]any{"app": "web"}},
			"spec": map[string]any{"replicas": int64(3), "containers": []any{
				map[string]any{"name": "a", "image": "registry/z"}, map[string]any{"name": "b", "image": "registry/b", "securityContext": map[string]any{}},
			}},
		}),
		Params:    native(map[string]any{"data": map[string]any{"max": "3"}}),
		Request:   native(map[string]any{"operation": "CREATE", "userInfo": map[string]any{"username": "me"}}),
		Namespace: native(map[string]any{"metadata": map[string]any{"labels": map[string]any{"env": "prod"}}}),
	}
}

// TestSameAsLibrary compares with the Program that the CEL library makes of the same
// expression: value or error, and cost.
func TestSameAsLibrary(t *testing.T) {
	compiler := NewCompiler(Stored)
	declarations := Declarations{Params: true, Authorizer: true}
	for _, expression := range expressions {
		t.Run(expression, func(t *testing.T) {
			program, err := compiler.Compile(expression, declarations)
			if err != nil {
				t.Fatal(err)
			}
			compiling.Lock()
			env, err := envFor(declarations, Stored)
			compiling.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			ast, issues := env.cel.Compile(expression)
			if issues.Err() != nil {
				t.Fatal(issues.Err())
			}
			library, err := env.cel.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
			if err != nil {
				t.Fatal(err)
			}
			evaluation := NewEvaluation(Variables{}, testInput())
			want, details, wantErr := library.ContextEval(t.Context(), evaluation)
			got, cost, gotErr := program.eval(t.Context(), evaluation)
			if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
				t.Fatalf("error %v, want %v", gotErr, wantErr)
			}
			if wantErr == nil && want.Equal(got) != types.True {
				t.Errorf("got %v, want %v", got, want)
			}
			if wantCost := details.ActualCost(); *wantCost != cost {
				t.Errorf("cost %d, want %d", cost, *wantCost)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	compiler := NewCompiler(New)
	declarations := Declarations{}
	for _, v := range [][2]string{
		{"replicas", "object.spec.replicas"}, {"names", "object.spec.containers.map(c, c.name)"}, {"two", "variables.replicas > 2 ? 'many' : 'few'"},
		{"broken", "object.spec."}, {"fails", "object.spec.missing"}, {"list", "[1, 2]"}, {"mapping", "{'a': 1}"},
	} {
		if err := compiler.Declare(v[0], v[1], declarations); (err != nil) != (v[0] == "broken") {
			t.Fatal(v, err)
		}
	}
	for expression, want := range map[string]string{
		"variables.two == 'many'": "true", "variables.names.size() == 2": "true", "variables.list[1] == 2": "true", "variables.mapping.a == 1": "true", "has(variables.replicas)": "true",
		"variables.broken == 1": "fails to compile", "variables.fails == 1": `composited variable "fails" fails to evaluate: no such key: missing`,
	} {
		program, err := compiler.Compile(expression, declarations, cel.BoolType)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		evaluation := NewEvaluation(compiler.Variables(), testInput())
		evaluation.SetBudget(celconfig.RuntimeCELCostBudget)
		value, err := evaluation.Evaluate(t.Context(), expression, program)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", expression, err)
			}
		} else if want != "true" || value != types.True {
			t.Errorf("%s is %v", expression, value)
		}
	}
	for _, expression := range []string{"variables.two + 1 == 3", "variables.list == 'a'", "variables.unknown", "variables.replicas.x.y == variables.none"} {
		if _, err := compiler.Compile(expression, declarations, cel.BoolType); err == nil {
			t.Errorf("%s compiles", expression)
		}
	}
}

// A variable of another type makes another Program of the same expression.
func TestProgramsAreShared(t *testing.T) {
	compile := func(variable, expression string) *Program {
		compiler := NewCompiler(Stored)
		if err := compiler.Declare("v", variable, Declarations{}); err != nil {
			t.Fatal(err)
		}
		program, err := compiler.Compile(expression, Declarations{})
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	a, b := compile("1", "variables.v == variables.v"), compile("2", "variables.v == variables.v")
	if a != b {
		t.Error("equal expressions are compiled twice")
	}
	if a == compile("'a'", "variables.v == variables.v") {
		t.Error("a variable of another type shares the Program")
	}
	if compile("'a'", "object.x == 1") != compile("2", "object.x == 1") {
		t.Error("expressions that use no variables are compiled twice")
	}
}

func TestBudget(t *testing.T) {
	compiler := NewCompiler(Stored)
	if err := compiler.Declare("v", "object.spec.containers.map(c, c.name)", Declarations{}); err != nil {
		t.Fatal(err)
	}
	program, err := compiler.Compile("variables.v.size() == 2", Declarations{})
	if err != nil {
		t.Fatal(err)
	}
	for budget, ok := range map[int64]bool{0: false, 10: false, 1000: true} {
		evaluation := NewEvaluation(compiler.Variables(), testInput())
		evaluation.SetBudget(budget)
		if _, err := evaluation.Evaluate(t.Context(), "", program); (err == nil) != ok {
			t.Errorf("with a budget of %d: %v", budget, err)
		}
	}
}
