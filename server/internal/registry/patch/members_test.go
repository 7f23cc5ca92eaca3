package patch

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

const (
	mergedPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"1"}},` +
		`"spec":{"containers":[{"name":"a","image":"i"},{"name":"b"}],"nodeName":"n"},"status":{"phase":"Running","conditions":[{"type":"A","status":"True"},{"type":"B","status":"True"}]}}`
)

var mergePatches = []string{
	`{}`,
	`{"status":{"phase":"Failed"}}`,
	`{"status":{"conditions":[{"type":"B","status":"False"}]}}`,
	`{"status":{"$setElementOrder/conditions":[{"type":"B"},{"type":"A"}],"conditions":[{"type":"B","status":"False"}]}}`,
	`{"status":null,"metadata":{"labels":{"a":null,"b":"2"}}}`,
	`{"status":{"$patch":"replace","phase":"Failed"}}`,
	`{"$patch":"replace","metadata":{"name":"p"}}`,
	`{"$retainKeys":["metadata","spec"],"spec":{"nodeName":"m"}}`,
	`{"unknown":{"a":null,"b":1},"status":{"unknown":[1]}}`,
	`{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}`,
	`{"spec":{"containers":[{"image":"no key"}]}}`,
	`{"spec":"a string"}`,
	`{"kind":"Node","metadata":null,"spec":null,"status":null,"apiVersion":null}`,
}

// TestTouchedMembersAreEnough compares merges with what the libraries make of the whole
// document.
func TestTouchedMembersAreEnough(t *testing.T) {
	for _, body := range mergePatches {
		for kind, whole := range map[types.PatchType]func() ([]byte, error){
			types.MergePatchType: func() ([]byte, error) { return jsonpatch.MergePatch([]byte(mergedPod), []byte(body)) },
			types.StrategicMergePatchType: func() ([]byte, error) {
				return strategicpatch.StrategicMergePatch([]byte(mergedPod), []byte(body), &corev1.Pod{})
			},
		} {
			p, err := Parse(kind, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Apply([]byte(mergedPod), &corev1.Pod{})
			want, wantErr := whole()
			if (err == nil) != (wantErr == nil) {
				t.Errorf("%s of %s: %v, want %v", kind, body, err, wantErr)
				continue
			}
			if err == nil && kind == types.StrategicMergePatchType && strings.Contains(body, `"kind"`) { // which leaves the kind as it is
				fields := decoded(t, want).(map[string]any)
				fields["kind"], fields["apiVersion"] = "Pod", "v1"
				if want, err = json.Marshal(fields); err != nil {
					t.Fatal(err)
				}
			}
			if err == nil && !reflect.DeepEqual(decoded(t, got), decoded(t, want)) {
				t.Errorf("%s of %s:\n%s\nwant\n%s", kind, body, got, want)
			}
		}
	}
}

func decoded(t *testing.T, doc []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(doc, &value); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return value
}

// TestWithin: which patches are surely about the status alone.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		kind types.PatchType
		body string
		want bool
	}{
		{types.MergePatchType, `{"status":{"phase":"Failed"}}`, true},
		{types.MergePatchType, `{"status":{},"spec":{}}`, false},
		{types.StrategicMergePatchType, `{"metadata":{"uid":"u"},"status":{}}`, true},
		{types.StrategicMergePatchType, `{"status":{},"$patch":"delete"}`, false},
		{types.JSONPatchType, `[{"op":"replace","path":"/status/phase","value":"Failed"}]`, true},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/nodeName","value":"n"},{"op":"remove","path":"/status/phase"}]`, false},
		{types.JSONPatchType, `[{"op":"copy","from":"/spec/nodeName","path":"/status/phase"}]`, false},
		{types.JSONPatchType, `[{"op":"replace","path":"","value":{}}]`, false},
		{types.JSONPatchType, `[{"op":"remove","path":"/stat~0us"}]`, false},
		{types.JSONPatchType, `[{"op":"test","path":"status/spec","value":null},{"op":"remove","path":"/status/phase"}]`, false},
		{types.JSONPatchType, `[{"op":"copy","from":"status/spec/nodeName","path":"/status/message"}]`, false},
	} {
		p, err := Parse(c.kind, []byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Within("metadata", "status"); got != c.want {
			t.Errorf("Within of %s is %v", c.body, got)
		}
	}
}
