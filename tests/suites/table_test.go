package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestTableIsRight(t *testing.T) {
	all, err := parseTable(tableYAML)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Errorf("the table has %d suites, want at least 10", len(all))
	}
}

func TestTableIsChecked(t *testing.T) {
	const right = "- {name: a, module: example.com/a, version: v1.2.3, packages: [./...]}\n"
	if _, err := parseTable([]byte(right)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":                 {"- [", "suites.yaml"},
		"an unknown member":       {"- {name: a, modul: b}\n", `unknown field "modul"`},
		"a name with a space":     {strings.Replace(right, "name: a", "name: a b", 1), "small letters"},
		"no module":               {strings.Replace(right, "example.com/a", `""`, 1), "which module"},
		"no exact version":        {strings.Replace(right, "v1.2.3", "latest", 1), `"latest" is none`},
		"no packages":             {strings.Replace(right, "./...", "", 1), "which packages"},
		"a package of others":     {strings.Replace(right, "./...", "fmt", 1), "./"},
		"two of one name":         {right + right, "two suites are called a"},
		"a module far out":        {strings.Replace(right, "}", ", beside: [{folder: ../../../x, module: m, version: v1.0.0}]}", 1), "too far out"},
		"a module without a name": {strings.Replace(right, "}", ", beside: [{folder: x, version: v1.0.0}]}", 1), "a module and a version are needed"},
		"no reason":               {strings.Replace(right, "}", ", leftOut: [{package: ./x}]}", 1), "the reason are needed"},
		"no regular expression":   {strings.Replace(right, "}", ", leftOut: [{package: ./x, spec: '(', why: y}]}", 1), "missing closing"},
		"a spec and a test":       {strings.Replace(right, "}", ", leftOut: [{package: ./x, spec: a, test: b, why: y}]}", 1), "either a spec or a test"},
	} {
		if _, err := parseTable([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestChoose(t *testing.T) {
	all := table{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for names, want := range map[string][]string{"": {"a", "b", "c"}, "b": {"b"}, "c,a": {"a", "c"}, "a b": {"a", "b"}, "a,a": {"a"}} {
		chosen, err := all.choose(names)
		if err != nil || !reflect.DeepEqual(chosen.names(), want) {
			t.Errorf("%q: %v %v, want %v", names, chosen.names(), err, want)
		}
	}
	for _, names := range []string{"d", "a,d", ","} {
		if _, err := all.choose(names); err == nil || !strings.Contains(err.Error(), "choose of a, b, c") {
			t.Errorf("%q: %v, want an error that names the suites", names, err)
		}
	}
}

func TestLeavesOut(t *testing.T) {
	s := suite{LeftOut: []leftOut{
		{Package: "./pkg/a", Spec: "deletes", Why: "w"}, {Package: "./pkg/a/", Test: "TestX/y", Why: "w"}, {Package: "./pkg/b", Why: "w"},
	}}
	if specs, tests, whole := s.leavesOut("./pkg/a"); whole || !reflect.DeepEqual(specs, []string{"deletes"}) || !reflect.DeepEqual(tests, []string{"TestX/y"}) {
		t.Errorf("%q %q %v", specs, tests, whole)
	}
	if _, _, whole := s.leavesOut("./pkg/b"); !whole {
		t.Error("a package that is left out is run")
	}
	if specs, tests, whole := s.leavesOut("./pkg/c"); specs != nil || tests != nil || whole {
		t.Errorf("%q %q %v of a package that the table does not name", specs, tests, whole)
	}
	want := []string{"-test.skip=TestX/y", "-ginkgo.skip=deletes"}
	for _, flag := range want {
		if flags := flagsOf(&s, testPackage{name: "./pkg/a", ginkgo: true}, "r.json"); !strings.Contains(strings.Join(flags, "\n"), flag) {
			t.Errorf("%q lacks %s", flags, flag)
		}
	}
	if flags := flagsOf(&s, testPackage{name: "./pkg/a"}, "r.json"); strings.Contains(strings.Join(flags, "\n"), "-ginkgo") {
		t.Errorf("%q has flags of ginkgo for tests that do not know them", flags)
	}
}

func TestPackagesThatLinkEnvtest(t *testing.T) {
	const list = `
{"ImportPath": "example.com/a/plain", "Dir": "/s/plain"}
{"ImportPath": "example.com/a/plain.test", "Dir": "/s/plain", "Deps": ["fmt"]}
{"ImportPath": "example.com/a/specs.test", "Dir": "/s/specs", "Deps": ["github.com/onsi/ginkgo/v2", "sigs.k8s.io/controller-runtime/pkg/envtest"]}
{"ImportPath": "example.com/a/specs [example.com/a/specs.test]", "ForTest": "example.com/a/specs", "Dir": "/s/specs", "Deps": ["sigs.k8s.io/controller-runtime/pkg/envtest"]}
{"ImportPath": "example.com/a.test", "Dir": "/s", "Deps": ["sigs.k8s.io/controller-runtime/pkg/envtest [example.com/a.test]"]}
`
	found, err := parseList(strings.NewReader(list), "example.com/a")
	want := []testPackage{
		{name: "./specs", path: "example.com/a/specs", folder: "/s/specs", ginkgo: true},
		{name: ".", path: "example.com/a", folder: "/s"},
	}
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("%+v %v, want %+v", found, err, want)
	}
	if _, err := parseList(strings.NewReader("{"), "m"); err == nil {
		t.Error("a list that breaks off is read")
	}
}
