package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// TestParamsAreDecodedOnce: parameters that a selector finds are decoded once for each version, and not for each request:
// anybody may make thousands of them in a namespace. They have many members here: long strings are not copied.
func TestParamsAreDecodedOnce(t *testing.T) {
	const params, members = 5, 10_000
	f := newFixture(t)
	f.apply(policyFor("limits", "apps", "deployments", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n"+
		"  - {expression: 'object.spec.replicas <= int(params.data.max)', messageExpression: \"'by ' + params.metadata.name + ' of ' + params.kind\"}\n") + "\n---\n" +
		bindingFor("limits", "  paramRef: {selector: {matchLabels: {role: limit}}, parameterNotFoundAction: Deny}\n"))
	for i := range params {
		f.apply(configMap(fmt.Sprint("p", i), "role: limit", "max: '5'"+manyMembers(members)))
	}
	f.expect(deployment("d", "5", "a"), "")
	if n := len(f.policies.params.byNamespace["default"].entries); n != params {
		t.Errorf("%d parameters are kept, want %d", n, params)
	}
	before := allocated()
	f.expect(deployment("d", "5", "a"), "")
	if bytes := allocated() - before; bytes > params*members*32/2 { // a member is two strings
		t.Errorf("a request allocated %d bytes although its parameters were known", bytes)
	}
	// What is kept of a version is not taken for the next one, nor for another object of that name.
	f.remove(configMap("p3", "role: limit", ""))
	f.apply(configMap("p3", "role: limit", "max: '4'"))
	f.expect(deployment("d", "5", "a"), "denied request: by p3 of ConfigMap")
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ", k%d: ''", i)
	}
	return b.String()
}

// allocated is how many bytes have been allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestParamsLetOthersRun: a request asks for its place in the run queue before each parameter, and not once for all.
func TestParamsLetOthersRun(t *testing.T) {
	const params = 50
	f := newFixture(t)
	f.apply(policyFor("limits", "apps", "deployments", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n"+
		"  - {expression: 'object.spec.replicas <= int(params.data.max)'}\n") + "\n---\n" +
		bindingFor("limits", "  paramRef: {selector: {matchLabels: {role: limit}}, parameterNotFoundAction: Deny}\n"))
	for i := range params {
		f.apply(configMap(fmt.Sprint("p", i), "role: limit", "max: '5'"))
	}
	r, obj := f.decode(deployment("d", "5", "a"))
	ctx := &queueing{Context: f.context()}
	_, err := r.Create(ctx, obj.GetNamespace(), obj, registry.WriteOptions{})
	must(t, err)
	if ctx.asked < params {
		t.Errorf("a request with %d parameters lets others run %d times", params, ctx.asked)
	}
}

// queueing is the context of a request. It counts how often the request looks for its task.
type queueing struct {
	context.Context
	asked int
}

func (q *queueing) Value(key any) any {
	if key == runqueue.Key {
		q.asked++
	}
	return q.Context.Value(key)
}

// TestKeptParamsAreBounded: by the bytes of their JSON, and of what becomes of it.
func TestKeptParamsAreBounded(t *testing.T) {
	var c paramCache
	add := func(name, json string) { c.keep(paramVersion{key: name}, &corev1.ConfigMap{}, []byte(json)) }
	megabyte := strings.Repeat("x", 1<<20)
	for i := range 2 * oneInTaken * maxCachedParams >> 20 {
		add(fmt.Sprint(i), megabyte)
		add("again", megabyte)
	}
	if c.refused == 0 {
		t.Error("every parameter takes the place of others")
	}
	sum := 0
	for _, e := range c.byNamespace[""].entries {
		sum += e.bytes
	}
	if sum != c.bytes || sum > maxCachedParams || sum < maxCachedParams-1<<20 {
		t.Errorf("%d bytes of parameters are kept, counted as %d", sum, c.bytes)
	}
	for range oneInTaken {
		add("elements", strings.Repeat("{}", maxCachedParams>>10))
	}
	if c.find(paramVersion{key: "elements"}) != nil {
		t.Error("a parameter that takes more than all may take is kept")
	}
}

// TestParamsOfOneNamespaceDoNotDropOthers: anybody may make thousands of them in a namespace of its own, and every request
// there asks for all of them.
func TestParamsOfOneNamespaceDoNotDropOthers(t *testing.T) {
	const limit = maxCachedParams
	var c paramCache
	json := []byte(strings.Repeat("x", 1<<20))
	add := func(namespace string, i int) paramVersion {
		v := paramVersion{namespace: namespace, key: fmt.Sprint(i)}
		c.keep(v, &corev1.ConfigMap{}, json)
		return v
	}
	for i := range limit >> 20 {
		add("greedy", i) // which has all the room that there is
	}
	var others []paramVersion
	for i := range limit >> 22 {
		for range oneInTaken { // one of these takes the place of others
			add("other", i)
		}
		others = append(others, add("other", i))
	}
	for i := range 2 * oneInTaken * limit >> 20 {
		add("greedy", 1000+i)
	}
	for _, v := range others {
		if c.find(v) == nil {
			t.Fatalf("parameter %s of a namespace with little was dropped for those of a namespace with much", v.key)
		}
	}
	if greedy := c.byNamespace["greedy"]; c.bytes > limit || c.bytes != greedy.bytes+c.byNamespace["other"].bytes || greedy.bytes < limit/2 {
		t.Errorf("%d bytes are kept, %d of them of the namespace with much", c.bytes, greedy.bytes)
	}
	for i := range oneInTaken * limit >> 20 {
		add(fmt.Sprint("ns", i), 0)
	}
	for name, kept := range c.byNamespace {
		if len(kept.entries) == 0 || kept.bytes == 0 {
			t.Errorf("namespace %s is kept without parameters", name)
		}
	}
}

// TestParamsTakeWhatIsCounted, whatever they consist of: what is kept is bounded by that.
func TestParamsTakeWhatIsCounted(t *testing.T) {
	const copies = 10
	configMap := func() resource.Object { return &corev1.ConfigMap{} }
	pod := func() resource.Object { return &corev1.Pod{} }
	custom := func() resource.Object { return &unstructured.Unstructured{} }
	for name, test := range map[string]struct {
		json string
		into func() resource.Object
	}{
		"a long string":  {`{"data":{"a":"` + strings.Repeat("x", 200_000) + `"}}`, configMap},
		"members":        {`{"data":{` + numberedMembers(20_000, `""`) + `}}`, configMap},
		"containers":     {`{"spec":{"containers":[` + strings.Repeat("{},", 10_000) + `{}]}}`, pod},
		"small objects":  {`{"kind":"A","data":[` + strings.Repeat(`{"a":"x"},`, 20_000) + `{}]}`, custom},
		"custom members": {`{"kind":"A","data":{` + numberedMembers(20_000, `"x"`) + `}}`, custom},
		"numbers":        {`{"kind":"A","data":[` + strings.Repeat("1000,", 40_000) + `1]}`, custom},
		"empty objects":  {`{"kind":"A","data":[` + strings.Repeat("{},", 40_000) + `{}]}`, custom},
		"empty lists":    {`{"kind":"A","data":[` + strings.Repeat("[],", 40_000) + `[]]}`, custom},
	} {
		kept := make([]resource.Object, copies)
		before := heapInUse()
		for i := range kept {
			kept[i] = test.into()
			must(t, json.Unmarshal([]byte(test.json), kept[i]))
		}
		each := int(int64(heapInUse())-int64(before)) / copies
		runtime.KeepAlive(kept)
		if counted := decodedBytes(kept[0], []byte(test.json)); each > counted {
			t.Errorf("%s: %d bytes are counted as %d", name, each, counted)
		}
	}
}

func numberedMembers(n int, value string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":%s`, i, value)
	}
	return strings.Join(members, ",")
}
