package jsonpatch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func tree(t *testing.T, text string) any {
	t.Helper()
	v, err := Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `null`},
		{`{"a":1}`, `{"a":2}`, `[{"op":"replace","path":"/a","value":2}]`},
		{`{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{`{"a":1,"b":{"c":2}}`, `{"b":{}}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/b/c"}]`},
		{`{}`, `{"x/y~z":[]}`, `[{"op":"add","path":"/x~1y~0z","value":[]}]`},
		{`{"l":[1,2,3]}`, `{"l":[0,1,2,3]}`, `[{"op":"add","path":"/l/0","value":0}]`},
		{`{"l":[1,2,3]}`, `{"l":[1,3]}`, `[{"op":"remove","path":"/l/1"}]`},
		{`{"l":[1,2,3,4]}`, `{"l":[]}`, `[{"op":"remove","path":"/l/3"},{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"},{"op":"remove","path":"/l/0"}]`},
		{`{"l":[{"a":1},5]}`, `{"l":[{"a":2},5,6]}`, `[{"op":"replace","path":"/l/0/a","value":2},{"op":"add","path":"/l/2","value":6}]`},
		{`{"l":[]}`, `{"l":{}}`, `[{"op":"replace","path":"/l","value":{}}]`},
		{`1`, `{"a":1}`, `[{"op":"replace","path":"","value":{"a":1}}]`},
	} {
		before, after := tree(t, c.before), tree(t, c.after)
		ops := Diff(before, after)
		if got := apply(t, before, ops); !reflect.DeepEqual(got, after) {
			t.Errorf("%s to %s: %s gives %s", c.before, c.after, text(t, ops), text(t, got))
		}
		if got := text(t, ops); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

// Any two documents: applying the patch to one gives the other.
func TestDiffOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		before, after := anything(random, 3), anything(random, 3)
		ops := Diff(before, after)
		if got := apply(t, before, ops); !reflect.DeepEqual(got, after) {
			t.Fatalf("%s to %s: %s gives %s", text(t, before), text(t, after), text(t, ops), text(t, got))
		}
	}
}

func anything(random *rand.Rand, depth int) any {
	kind := random.IntN(5)
	if depth == 0 {
		kind = random.IntN(3)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return json.Number(strconv.Itoa(random.IntN(3)))
	case 2:
		return fmt.Sprint("s", random.IntN(2))
	case 3:
		list := make([]any, random.IntN(4))
		for n := range list {
			list[n] = anything(random, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range random.IntN(4) {
		object[string(rune('a'+random.IntN(4)))] = anything(random, depth-1)
	}
	return object
}

// apply applies a patch to a copy of a document.
func apply(t *testing.T, document any, ops []Operation) any {
	t.Helper()
	document = tree(t, text(t, document))
	for _, op := range ops {
		value := op.Value
		if op.Path == "" {
			document = value
			continue
		}
		parts := strings.Split(op.Path[1:], "/")
		document = applyAt(t, document, parts, op)
	}
	return document
}

func applyAt(t *testing.T, at any, parts []string, op Operation) any {
	t.Helper()
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[0])
	switch at := at.(type) {
	case map[string]any:
		_, there := at[name]
		switch {
		case len(parts) > 1:
			at[name] = applyAt(t, at[name], parts[1:], op)
		case op.Op == "remove" && there:
			delete(at, name)
		case op.Op == "add" || op.Op == "replace" && there:
			at[name] = op.Value
		default:
			t.Fatalf("%+v: no %s", op, name)
		}
		return at
	case []any:
		n, err := strconv.Atoi(name)
		if err != nil || n > len(at) {
			t.Fatalf("%+v: no element %s", op, name)
		}
		switch {
		case len(parts) > 1:
			at[n] = applyAt(t, at[n], parts[1:], op)
		case op.Op == "remove":
			at = append(at[:n:n], at[n+1:]...)
		case op.Op == "add":
			at = append(at[:n:n], append([]any{op.Value}, at[n:]...)...)
		default:
			at[n] = op.Value
		}
		return at
	}
	t.Fatalf("%+v: nothing there", op)
	return nil
}

func TestChangesAreCarriedOver(t *testing.T) {
	for _, c := range []struct{ name, document, before, after, want string }{
		{"nothing", `{"unknown":1}`, `{"status":{}}`, `{"status":{}}`, `{"unknown":1}`},
		{"a field, beside an unknown one", `{"unknown":1,"a":1}`, `{"a":1,"status":{}}`, `{"a":2,"status":{}}`, `{"unknown":1,"a":2}`},
		{"below what the document does not have", `{}`, `{"template":{"metadata":{"creationTimestamp":null}}}`,
			`{"template":{"metadata":{"creationTimestamp":null,"labels":{"a":"b"}}}}`, `{"template":{"metadata":{"labels":{"a":"b"}}}}`},
		{"below a null", `{"template":null}`, `{"template":{}}`, `{"template":{"a":1}}`, `{"template":{"a":1}}`},
		{"a removal", `{"a":1,"b":{"c":1,"unknown":2}}`, `{"a":1,"b":{"c":1}}`, `{"b":{}}`, `{"b":{"unknown":2}}`},
		{"a removal of what the type shows otherwise", `{"a":"1000m"}`, `{"a":"1"}`, `{}`, `{}`},
		{"elements keep what is unknown", `{"l":[{"name":"a","u":1},{"name":"b","u":2}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`,
			`{"l":[{"name":"new"},{"name":"b","x":1},{"name":"a"}]}`, `{"l":[{"name":"new"},{"name":"b","u":2,"x":1},{"name":"a","u":1}]}`},
		{"elements without names", `{"l":[{"k":1,"u":1},{"k":2,"u":2}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":1},{"k":3}]}`, `{"l":[{"k":1,"u":1},{"k":3,"u":2}]}`},
		{"an element less", `{"l":[{"k":1,"u":1},{"k":2,"u":2}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":2}]}`, `{"l":[{"k":2,"u":2}]}`},
		{"another type", `{"a":[1]}`, `{"a":[1]}`, `{"a":"x"}`, `{"a":"x"}`},
	} {
		got := CarryOver(tree(t, c.document), tree(t, c.before), tree(t, c.after))
		if !reflect.DeepEqual(got, tree(t, c.want)) {
			t.Errorf("%s: %s, want %s", c.name, text(t, got), c.want)
		}
	}
}
