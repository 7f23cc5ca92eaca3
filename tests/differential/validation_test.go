package differential

import (
	"slices"
	"testing"
)

func TestFieldValidationsHaveNames(t *testing.T) {
	c, k := widgets(t)
	k.verbs = append(k.verbs, "patch")
	all := fieldValidations([]*object{widget(t, k)}, allVerbs, 1, 0)
	for _, r := range all {
		parsed, err := parseRequest(c, r.String())
		if err != nil {
			t.Fatal(err)
		}
		if parsed.String() != r.String() {
			t.Errorf("%q was read as %q", r, parsed)
		}
	}
	for _, want := range []string{
		`create example.com/v1 Widget small unknownField=1`,
		`update example.com/v1 Widget small query.fieldValidation="Strict" spec.parts[0].unknownField=1`,
		`apply example.com/v1 Widget small query.fieldValidation="Warn" spec.size=doubled`,
		`merge example.com/v1 Widget small query.fieldValidation="Invented" unknownField=1`,
	} {
		if !slices.Contains(names(all), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if some := fieldValidations([]*object{widget(t, k)}, allVerbs, 1, 7); !slices.Equal(names(some), names(all)[:7]) {
		t.Errorf("%q", names(some))
	}
}

func TestFieldValidationMessages(t *testing.T) {
	c, _ := widgets(t)
	base := map[string]any{"metadata": map[string]any{"name": "example"}, "spec": map[string]any{"size": 1}}
	for name, want := range map[string][2]string{
		`create example.com/v1 Widget small query.fieldValidation="Strict" spec.size=doubled`: {`&fieldValidation=Strict`, `{"metadata":{"name":"example"},"spec":{"size":1,"size":1}}`},
		`update example.com/v1 Widget small spec.other=1`:                                     {``, `{"metadata":{"name":"example"},"spec":{"other":1,"size":1}}`},
		`merge example.com/v1 Widget small query.fieldValidation=["Warn",""] spec.size=doubled`: {
			`&fieldValidation=Warn&fieldValidation=`, `{"spec":{"size":1,"size":1}}`,
		},
		`json example.com/v1 Widget small query.fieldValidation="Warn" spec.size=doubled`: {`&fieldValidation=Warn`, `[{"op":"replace","path":"/spec","value":{"size":1,"size":1}}]`},
	} {
		r, err := parseRequest(c, name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.message(base)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := bodyOf(m.body); err != nil || m.query != want[0] || string(body) != want[1] {
			t.Errorf("%s: %s with %s, %v", name, m.query, body, err)
		}
	}
	if literal(base) != `{"metadata":{"name":"example"},"spec":{"size":1}}` {
		t.Errorf("the object was changed: %s", literal(base))
	}
}
