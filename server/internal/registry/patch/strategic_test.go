package patch

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// named returns n elements of a list, each with a name and with more.
func named(n int, more string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"name":"e%d"%s}`, i, more)
	}
	return "[" + strings.TrimPrefix(b.String(), ",") + "]"
}

func podOf(containers string) string { return `{"spec":{"containers":` + containers + `}}` }

func onePodOf(environment, more string) string {
	return podOf(`[{"name":"a",` + more + `"env":` + environment + `}]`)
}

// TestExpensiveStrategicPatches: a list costs about the square of its length, of what it is and of what the
// patch has, and all that one patch merges counts.
func TestExpensiveStrategicPatches(t *testing.T) {
	finalizers := func(n int, from string) string {
		return `{"metadata":{"finalizers":["` + from + `"` + strings.Repeat(`,"`+from+`"`, n-1) + `]}}`
	}
	value := `,"value":"x"`
	env := `,"env":`
	for what, test := range map[string]struct {
		doc, patch string
		refused    bool
	}{
		"two long lists":               {onePodOf(named(4900, value), ""), onePodOf(named(4900, value), ""), true},
		"a long list":                  {onePodOf(named(9000, value), ""), onePodOf(named(1, value), ""), true},
		"a long patch":                 {onePodOf(named(1, value), ""), onePodOf(named(9000, value), ""), true},
		"a long patch of a short list": {onePodOf(`[]`, ""), onePodOf(named(9000, value), ""), true},
		"a long patch of no list":      {podOf(named(1, "")), onePodOf(named(9000, value), ""), false},
		"a long order":                 {onePodOf(named(1000, value), ""), podOf(`[{"name":"a","$setElementOrder/env":` + named(8000, "") + `}]`), true},
		"an order of a new list":       {podOf(named(1, "")), onePodOf(named(4000, value), `"$setElementOrder/env":`+named(4000, "")+`,`), true},
		"a replaced list":              {onePodOf(named(1, value), ""), onePodOf(`[{"$patch":"replace"},`+named(9000, value)[1:], ""), true},
		"scalars":                      {finalizers(4900, "a"), finalizers(4900, "b"), true},
		"many lists":                   {podOf(named(40, env+named(100, value))), podOf(named(40, env+named(100, value))), false},
		"many long lists":              {podOf(named(4, env+named(1200, value))), podOf(named(4, env+named(1200, value))), true},
		"one element many times": {
			onePodOf(named(1000, value), ""), podOf(`[` + strings.Repeat(`{"name":"a","env":[{"name":"e0"}]},`, 2000) + `{"name":"a"}]`), true,
		},
		"one element many times that grows": {
			podOf(`[]`), podOf(`[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","env":`+named(50, value)+`},`, 90), ",") + `]`), true,
		},
	} {
		p, err := Parse(types.StrategicMergePatchType, []byte(test.patch))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Apply([]byte(test.doc), &corev1.Pod{})
		if apierrors.IsRequestEntityTooLargeError(err) != test.refused || err != nil && !test.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestComparisonsOfLargeObjects: objects that are as large as those that clusters have stay far below the limit.
func TestComparisonsOfLargeObjects(t *testing.T) {
	conditions := func(n int) string {
		return `{"status":{"conditions":` + strings.ReplaceAll(named(n, `,"status":"True"`), "name", "type") +
			`,"images":[{"names":["a"]}` + strings.Repeat(`,{"names":["a"]}`, n-1) + `]}}`
	}
	pod := podOf(named(250, `,"env":`+named(20, `,"value":"x"`)+`,"ports":[{"containerPort":1},{"containerPort":2}]`))
	for what, test := range map[string]struct {
		doc, patch string
		like       any
		most       int
	}{
		"a node's heartbeat":      {conditions(1000), conditions(4), &corev1.Node{}, maxComparisons / 15},
		"all of a node":           {conditions(1000), conditions(1000), &corev1.Node{}, maxComparisons / 4},
		"one container of many":   {pod, podOf(`[{"name":"e7","image":"x","env":` + named(20, "") + `}]`), &corev1.Pod{}, maxComparisons / 200},
		"all of many containers":  {pod, pod, &corev1.Pod{}, maxComparisons / 20},
		"a field without a list":  {pod, `{"metadata":{"labels":{"a":"b"}}}`, &corev1.Pod{}, 0},
		"a field that is unknown": {pod, `{"spec":{"none":[1],"containers":{"a":[1]}}}`, &corev1.Pod{}, 0},
	} {
		meta, err := strategicpatch.NewPatchMetaFromStruct(test.like)
		if err != nil {
			t.Fatal(err)
		}
		var live, patch map[string]any
		for text, into := range map[string]*map[string]any{test.doc: &live, test.patch: &patch} {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		if test.doc == test.patch {
			live = patch
		}
		if n := comparisons(live, []map[string]any{patch}, meta); n > test.most {
			t.Errorf("%s: %d comparisons, want %d at most", what, n, test.most)
		}
	}
}
