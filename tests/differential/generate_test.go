package differential

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func names(requests []*request) []string {
	var list []string
	for _, r := range requests {
		list = append(list, r.String())
	}
	return list
}

// TestRequestsHaveNames: the name of each request that is generated makes that request.
func TestRequestsHaveNames(t *testing.T) {
	c, k := widgets(t)
	o := widget(t, k)
	for _, r := range generate([]*object{o}, allVerbs, 1, 5000) {
		parsed, err := parseRequest(c, r.String())
		if err != nil {
			t.Fatal(err)
		}
		if parsed.String() != r.String() {
			t.Errorf("%q was read as %q", r, parsed)
		}
		want, err := r.body(o.value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parsed.body(o.value); err != nil || literal(got) != literal(want) {
			t.Errorf("%q: %v, %v", r, got, err)
		}
	}
	if got := literal(o.value); got != literal(widget(t, k).value) {
		t.Errorf("the object was changed: %s", got)
	}
}

func TestGenerateRepeats(t *testing.T) {
	_, k := widgets(t)
	objects := []*object{widget(t, k)}
	const n = 700
	first := names(generate(objects, allVerbs, 7, n))
	if len(first) != n {
		t.Fatalf("%d requests in place of %d", len(first), n)
	}
	if again := names(generate(objects, allVerbs, 7, n)); !slices.Equal(first, again) {
		t.Error("the same seed makes other requests")
	}
	if other := names(generate(objects, allVerbs, 8, n)); slices.Equal(first, other) {
		t.Error("another seed makes the same requests")
	}
	slices.Sort(first)
	if len(slices.Compact(first)) != n {
		t.Error("a request comes twice")
	}
}

func TestGenerateSetsOneFieldAtATime(t *testing.T) {
	_, k := widgets(t)
	all := names(generate([]*object{widget(t, k)}, []string{create}, 1, 0))
	for _, want := range []string{
		`create example.com/v1 Widget small`,
		`create example.com/v1 Widget small spec.size=-1`,
		`create example.com/v1 Widget small spec.size=absent`,
		`create example.com/v1 Widget small spec.mode="Slow"`,
		`create example.com/v1 Widget small spec.mode="x"*300`,
		`create example.com/v1 Widget small spec.parts=twice`,
		`create example.com/v1 Widget small spec.parts[0].port=65536`,
		`create example.com/v1 Widget small spec.memory="-1"`,
		`create example.com/v1 Widget small metadata.name=null`,
	} {
		if !slices.Contains(all, want) {
			t.Errorf("missing: %s", want)
		}
	}
	review := *k
	review.verbs = []string{create}
	for _, name := range names(generate([]*object{widget(t, &review)}, allVerbs, 1, 0)) {
		if strings.HasPrefix(name, update) {
			t.Errorf("not expected of a kind that can only be created: %s", name)
		}
	}
	for _, never := range []string{
		`create example.com/v1 Widget small status=null`,
		`create example.com/v1 Widget small spec.mode=absent`, // it is
	} {
		if slices.Contains(all, never) {
			t.Errorf("not expected: %s", never)
		}
	}
}

func TestEdits(t *testing.T) {
	for text, want := range map[string]string{
		`spec.size=-1`:                    `{"spec":{"parts":[{"name":"a"}],"size":-1}}`,
		`spec.size=absent`:                `{"spec":{"parts":[{"name":"a"}]}}`,
		`spec.size=null`:                  `{"spec":{"parts":[{"name":"a"}],"size":null}}`,
		`spec.parts=twice`:                `{"spec":{"parts":[{"name":"a"},{"name":"a"}],"size":1}}`,
		`spec.parts[0].name="x"*3`:        `{"spec":{"parts":[{"name":"xxx"}],"size":1}}`,
		`spec.parts[0]=absent`:            `{"spec":{"parts":[],"size":1}}`,
		`spec.labels["a.b/c"]={"d e":[]}`: `{"spec":{"labels":{"a.b/c":{"d e":[]}},"parts":[{"name":"a"}],"size":1}}`,
	} {
		e, rest, err := parseEdit(text + " more")
		if err != nil || rest != " more" || e.String() != text {
			t.Errorf("%s was read as %v, and %q follows: %v", text, e, rest, err)
			continue
		}
		got, err := e.apply(decode(t, `{"spec":{"size":1,"parts":[{"name":"a"}]}}`))
		if err != nil || literal(got) != want {
			t.Errorf("%s made %s: %v", text, literal(got), err)
		}
	}
	for _, wrong := range []string{``, `spec`, `spec.=1`, `spec.size=`, `spec["a=1`, `spec[a]=1`, `spec.size=x`} {
		if e, _, err := parseEdit(wrong); err == nil {
			t.Errorf("%q was read as %v", wrong, e)
		}
	}
}

// TestGrow: a server that takes sizes of 2 or nothing, and drops the memory.
func TestGrow(t *testing.T) {
	_, k := widgets(t)
	o := &object{k, small, decode(t, `{"metadata":{"name":"example"}}`)}
	grown, err := grow(context.Background(), func(_ context.Context, _ *kind, value map[string]any) (*answer, error) {
		sent, err := parseJSON([]byte(literal(value)))
		if err != nil {
			return nil, err
		}
		if size, ok := get(sent, path{"spec", "size"}); ok && literal(size) != "2" {
			return &answer{Code: 422}, nil
		}
		kept, _, err := replaceAt(sent, path{"spec", "memory"}, func(any) (any, bool) { return nil, false })
		return &answer{Code: 201, Body: kept.(map[string]any)}, err
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"labels":{"example":"example"},"name":"example"},"spec":{"mode":"Fast","parts":[{"name":"example","port":8080}],"size":2}}`
	if got := literal(grown.value); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}
