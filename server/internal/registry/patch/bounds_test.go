package patch

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

func TestMeasure(t *testing.T) {
	for doc, want := range map[string]documentSize{
		`1`: {}, `{}`: {1, 0}, `[]`: {1, 0}, `[ ]`: {1, 0}, `[1]`: {1, 1}, `[1,2]`: {1, 2}, `{"a":1,"b":2}`: {1, 0},
		`{"a":[1,{"b":[2,3]}],"c":[[],[ ]]}`: {4, 6}, `{"a[,\"]":["],[\\",""]}`: {2, 2}, `[{},{"a":1,"b":2},[]]`: {2, 3},
	} {
		if got := measure([]byte(doc)); got != want {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
}

// TestDeepPatches: each level costs the libraries another pass over the rest.
func TestDeepPatches(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n) }
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		if _, err := Parse(kind, []byte(nested(maxPatchDepth+1))); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := Parse(kind, []byte(nested(maxPatchDepth))); err != nil {
			t.Errorf("%s at the limit: %v", kind, err)
		}
	}
	operation := `[{"op":"add","path":"/a","value":` + nested(maxPatchDepth) + `}]`
	if _, err := Parse(types.JSONPatchType, []byte(operation)); !apierrors.IsBadRequest(err) {
		t.Errorf("JSON patch: %v", err)
	}
}

// TestDeepDocuments: each level that a patch goes down in a document costs the library another pass over the rest of that.
func TestDeepDocuments(t *testing.T) {
	const levels = 1000
	nested := func(n int) string { return strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n) }
	moves, last := "", "/x" // each into one that is deep itself, so that what is parsed of all of them is one below the other
	for i := range 30 {
		next := fmt.Sprint("/b", i)
		moves += `,{"op":"add","path":"` + next + `","value":` + nested(44) + `},{"op":"move","from":"` + last + `","path":"` + next + strings.Repeat("/x", 44) + `"}`
		last = next
	}
	sideways := strings.Repeat(`,{"op":"move","from":"/x","path":"/y"},{"op":"move","from":"/y","path":"/x"}`, 500)
	for _, test := range []struct {
		kind    types.PatchType
		patch   string
		bytes   int
		refused bool
	}{
		{types.JSONPatchType, `[{"op":"add","path":"` + strings.Repeat("/x", levels) + `","value":1}]`, 1 << 20, true},
		{types.JSONPatchType, `[{"op":"copy","path":"/y","from":"` + strings.Repeat("/x", levels) + `"}]`, 1 << 20, true},
		{types.JSONPatchType, `[{"op":"add","path":"` + strings.Repeat("/x", levels) + `","value":1}]`, 1 << 10, false},
		{types.JSONPatchType, `[{"op":"add","path":"` + strings.Repeat("/x", 20) + `","value":1}]`, 1 << 20, false},
		{types.JSONPatchType, "[" + moves[1:] + "]", 1 << 20, true},
		{types.JSONPatchType, "[" + moves[1:] + "]", 1 << 10, false},
		{types.JSONPatchType, "[" + sideways[1:] + "]", 1 << 20, false},
		{types.JSONPatchType, `[{"op":"test","path":"/x","value":` + nested(maxPatchDepth-2) + `}]`, 1 << 20, true},
		{types.JSONPatchType, `[{"op":"test","path":"/none","value":null}]`, 1 << 20, false},
		{types.MergePatchType, strings.Repeat(`{"y":1,"y":2,"x":`, maxPatchDepth) + "1" + strings.Repeat("}", maxPatchDepth), 1 << 20, true},
		{types.MergePatchType, nested(maxPatchDepth), 1 << 20, false},
	} {
		p, err := Parse(test.kind, []byte(test.patch))
		if err != nil {
			t.Fatal(err)
		}
		doc := strings.Repeat(`{"x":`, levels) + `{"text":"` + strings.Repeat("a", test.bytes) + `"}` + strings.Repeat("}", levels)
		_, err = p.Apply([]byte(doc), nil)
		if test.refused != apierrors.IsRequestEntityTooLargeError(err) || err != nil && !test.refused {
			t.Errorf("%.60s of %d bytes: %v", test.patch, test.bytes, err)
		}
	}
}

// TestWideStrategicPatches: lists are compared element by element.
func TestWideStrategicPatches(t *testing.T) {
	environment := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"e%d","value":"x"}`, i)
		}
		return []byte(`{"spec":{"containers":[{"name":"a","env":[` + strings.TrimPrefix(b.String(), ",") + `]}]}}`)
	}
	patch, err := Parse(types.StrategicMergePatchType, environment(maxMergedElements/2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := patch.Apply(environment(maxMergedElements/2), &corev1.Pod{}); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("a wide patch: %v", err)
	}
	if patch, err = Parse(types.StrategicMergePatchType, environment(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := patch.Apply(environment(1000), &corev1.Pod{}); err != nil {
		t.Errorf("a small patch of a long list: %v", err)
	}
	if patch, err = Parse(types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := patch.Apply(environment(2*maxMergedElements), &corev1.Pod{}); err != nil {
		t.Errorf("a patch without lists: %v", err)
	}
}

// TestManyOperationsOnLongLists: each that adds or removes an element copies its list.
func TestManyOperationsOnLongLists(t *testing.T) {
	for _, test := range []struct {
		operations, elements int
		refused              bool
	}{{maxPatchOperations, 500_000, true}, {1, 500_000, false}, {1000, 1000, false}} {
		operation := `{"op":"remove","path":"/list/0"}`
		p, err := Parse(types.JSONPatchType, []byte("["+operation+strings.Repeat(","+operation, test.operations-1)+"]"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Apply([]byte(`{"list":[1`+strings.Repeat(",1", test.elements-1)+`]}`), nil)
		if test.refused != apierrors.IsRequestEntityTooLargeError(err) || err != nil && !test.refused {
			t.Errorf("%d operations on %d elements: %v", test.operations, test.elements, err)
		}
	}
	p, err := Parse(types.JSONPatchType, []byte(`[]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply([]byte(`{"list":[1]}`), nil); err != nil {
		t.Errorf("no operations: %v", err)
	}
}

// TestManyTouchedMembers: the members of an object are looked up in a patch.
func TestManyTouchedMembers(t *testing.T) {
	const many = 100_000
	var doc, body strings.Builder
	for i := range many {
		fmt.Fprintf(&doc, `,"d%d":1`, i)
		fmt.Fprintf(&body, `,"p%d":1`, i)
	}
	p, err := Parse(types.MergePatchType, []byte(`{"d1":2,"d1":3`+body.String()+`}`)) // a name that is there twice is left to the library
	if err != nil {
		t.Fatal(err)
	}
	for _, apply := range []func([]byte) ([]byte, error){
		func(doc []byte) ([]byte, error) { return p.Apply(doc, nil) },
		func(doc []byte) ([]byte, error) {
			return p.applyToTouched(doc, func(doc []byte) ([]byte, error) { return doc, nil })
		},
	} {
		if _, err := apply([]byte(`{"a":1` + doc.String() + `}`)); err != nil {
			t.Error(err)
		}
	}
}
