package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// apply applies a body, in YAML, in the name of a manager; "!" in front of it
// forces. "manager/status" applies to the status.
func (f *fixture) apply(t testing.TB, plural, name, manager, body string) (*registry.Result, error) {
	t.Helper()
	patch, err := patch.Parse(types.ApplyYAMLPatchType, []byte(body))
	if err != nil {
		return nil, err
	}
	manager, force := strings.CutPrefix(manager, "!")
	manager, subresource, _ := strings.Cut(manager, "/")
	opts := registry.PatchOptions{WriteOptions: registry.WriteOptions{FieldManager: manager}, Force: force}
	if subresource != "" {
		return f.of(t, plural).PatchSubresource(t.Context(), "default", name, subresource, patch, opts)
	}
	return f.of(t, plural).Patch(t.Context(), "default", name, patch, opts)
}

// owners describes an object's managedFields, one manager a line.
func owners(obj resource.Object) string {
	var lines []string
	for _, e := range obj.GetManagedFields() {
		owner := e.Manager + " " + string(e.Operation)
		if e.Subresource != "" {
			owner += "/" + e.Subresource
		}
		lines = append(lines, owner+" "+e.FieldsV1.GetRawString())
	}
	return strings.Join(lines, "\n")
}

const podHead = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"

// TestApplyMerges applies, one after the other, what managers want of a pod, and
// looks at what becomes of it.
func TestApplyMerges(t *testing.T) {
	type wish struct{ manager, body, conflict string }
	tests := []struct {
		name   string
		wishes []wish
		want   string
	}{
		{"labels are one field each", []wish{
			{"a", "metadata: {name: p, labels: {x: '1', w: '1'}}", ""},
			{"b", "metadata: {name: p, labels: {z: '1'}}", ""},
			{"a", "metadata: {name: p, labels: {x: '2'}}", ""},
		}, "labels x=2 z=1"},
		{"another's field is a conflict", []wish{
			{"a", "metadata: {name: p, labels: {x: '1'}}", ""},
			{"b", "metadata: {name: p, labels: {x: '2'}}", `Apply failed with 1 conflict: conflict with "a": .metadata.labels.x`},
		}, "labels x=1"},
		{"force takes it over", []wish{
			{"a", "metadata: {name: p, labels: {x: '1', w: '1'}}", ""},
			{"!b", "metadata: {name: p, labels: {x: '2'}}", ""},
			{"a", "metadata: {name: p, labels: {w: '1'}}", ""},
		}, "labels x=2 w=1"},
		{"the same value is owned by both", []wish{
			{"a", "metadata: {name: p, labels: {x: '1', w: '1'}}", ""},
			{"b", "metadata: {name: p, labels: {x: '1'}}", ""},
			{"a", "metadata: {name: p}", ""},
		}, "labels x=1"},
		{"and goes with the last one", []wish{
			{"a", "metadata: {name: p, labels: {x: '1', w: '1'}}", ""},
			{"b", "metadata: {name: p, labels: {x: '1'}}", ""},
			{"a", "metadata: {name: p}", ""},
			{"b", "metadata: {name: p}", ""},
		}, "labels"},
		{"finalizers are a set", []wish{
			{"a", "metadata: {name: p, finalizers: [e.com/a, e.com/b]}", ""},
			{"b", "metadata: {name: p, finalizers: [e.com/c]}", ""},
			{"a", "metadata: {name: p, finalizers: [e.com/b]}", ""},
		}, "labels finalizers e.com/b e.com/c"},
		{"containers have names", []wish{
			{"a", "spec: {containers: [{name: a, image: i}, {name: b, image: i}]}", ""},
			{"b", "spec: {containers: [{name: c, image: i, env: [{name: E, value: '1'}]}]}", ""},
			{"a", "spec: {containers: [{name: b, image: j}]}", ""},
		}, "labels container b j container c i E=1"},
		{"parts of a container may be another's", []wish{
			{"a", "spec: {containers: [{name: a, image: i}]}", ""},
			{"b", "spec: {containers: [{name: a, env: [{name: E, value: '1'}, {name: F, value: '1'}]}]}", ""},
			{"b", "spec: {containers: [{name: a, env: [{name: F, value: '2'}]}]}", ""},
			{"a", "spec: {containers: [{name: a, image: j, env: [{name: F, value: '3'}]}]}", `.spec.containers[name="a"].env[name="F"].value`},
		}, "labels container a i F=2"},
		{"ports have a number and a protocol, by default TCP", []wish{
			{"a", "spec: {containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}", ""},
			{"b", "spec: {containers: [{name: a, ports: [{containerPort: 80, protocol: TCP, name: http}]}]}", ""},
		}, "labels container a  80/TCP 80/UDP"},
		{"tolerations are one field", []wish{
			{"a", "spec: {tolerations: [{key: a}]}", ""},
			{"b", "spec: {tolerations: [{key: b}]}", `conflict with "a": .spec.tolerations`},
			{"!b", "spec: {tolerations: [{key: b}]}", ""},
		}, "labels toleration b"},
		{"so is the node selector", []wish{
			{"a", "spec: {nodeSelector: {a: '1'}}", ""},
			{"b", "spec: {nodeSelector: {b: '1'}}", `conflict with "a": .spec.nodeSelector`},
		}, "labels"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.clock.Advance(time.Second)
			for _, w := range test.wishes {
				body := podHead + w.body
				if strings.HasPrefix(w.body, "metadata") {
					body = "apiVersion: v1\nkind: Pod\n" + w.body
				}
				_, err := f.apply(t, "pods", "p", w.manager, body)
				switch {
				case w.conflict != "":
					wantStatus(t, w.manager, err, 409, metav1.StatusReasonConflict, w.conflict)
				case err != nil:
					t.Fatalf("%s: %v", w.manager, err)
				}
			}
			if got := describePod(f.get(t, "pods", "p").(*corev1.Pod)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func describePod(p *corev1.Pod) string {
	out := "labels"
	for _, name := range []string{"x", "w", "z"} {
		if v, ok := p.Labels[name]; ok {
			out += " " + name + "=" + v
		}
	}
	if len(p.Finalizers) > 0 {
		out += " finalizers " + strings.Join(p.Finalizers, " ")
	}
	for _, c := range p.Spec.Containers {
		out += " container " + c.Name + " " + c.Image
		for _, e := range c.Env {
			out += " " + e.Name + "=" + e.Value
		}
		for _, port := range c.Ports {
			out += fmt.Sprintf(" %d/%s", port.ContainerPort, protocol(port))
		}
	}
	for _, toleration := range p.Spec.Tolerations {
		out += " toleration " + toleration.Key
	}
	return out
}

func protocol(port corev1.ContainerPort) corev1.Protocol {
	if port.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return port.Protocol
}

func (f *fixture) get(t testing.TB, plural, name string) resource.Object {
	t.Helper()
	r := f.of(t, plural)
	res := r.Resource()
	kv, err := f.store.Get(t.Context(), res.StorePrefix+res.Key("default", name), 0)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := res.Decode(t.Context(), kv.Value)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestApplyCreatesAndThenChangesOnlyWhatDiffers(t *testing.T) {
	f := newFixture(t)
	body := podHead + "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1000m}}}]}"
	first, err := f.apply(t, "pods", "p", "a", body)
	if err != nil || !first.Created || first.Object.GetUID() == "" || first.Object.GetGeneration() != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	f.clock.Advance(time.Hour)
	again, err := f.apply(t, "pods", "p", "a", body)
	if err != nil || again.Created || again.Revision != first.Revision {
		t.Errorf("applied again: revision %d after %d, %v", again.Revision, first.Revision, err)
	}
	other, err := f.apply(t, "pods", "p", "b", podHead+"spec: {containers: [{name: c, image: i}]}")
	if err != nil || other.Revision == first.Revision || len(other.Object.GetManagedFields()) != 2 {
		t.Errorf("a second owner: %v, %v", other, err)
	}
	changed, err := f.apply(t, "pods", "p", "a", strings.Replace(body, "1000m", "2", 1))
	if err != nil || changed.Object.GetGeneration() != 2 {
		t.Fatalf("changed: %v, %v", changed, err)
	}
	times := map[string]time.Time{}
	for _, e := range changed.Object.GetManagedFields() {
		if e.Time != nil {
			times[e.Manager] = e.Time.UTC()
		}
	}
	if !times["a"].Equal(f.clock.Now()) {
		t.Errorf("times %v, want a's to be %v", times, f.clock.Now())
	}
}

func TestApplyRefuses(t *testing.T) {
	f := newFixture(t)
	f.create(t, "pods", newPod("p", ""))
	uid := "metadata: {name: %s, uid: 6d0ee7d5-f2a0-4dd2-8ac8-0c2d4a9fca5f}"
	tests := []struct {
		name, body string
		code       int32
		reason     metav1.StatusReason
		message    string
	}{
		{"p", "{", 400, metav1.StatusReasonBadRequest, "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content"},
		{"p", "a: [", 400, metav1.StatusReasonBadRequest, "error encoding patch: yaml: line 1: did not find expected node content"},
		{"p", "[]", 400, metav1.StatusReasonBadRequest, "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"p", "", 400, metav1.StatusReasonBadRequest, "invalid object type: /, Kind="},
		{"p", "null", 400, metav1.StatusReasonBadRequest, "invalid object type: /, Kind="},
		{"p", "kind: Pod", 400, metav1.StatusReasonBadRequest, "invalid object type: /, Kind=Pod"},
		{"p", "apiVersion: v1\nkind: 1\nmetadata: {name: p}", 400, metav1.StatusReasonBadRequest, "invalid object type: /v1, Kind="},
		{"p", "apiVersion: null\nkind: Pod\nmetadata: {name: p}", 400, metav1.StatusReasonBadRequest, "invalid object type: /, Kind=Pod"},
		{"p", `{"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "p"}}`, 400, metav1.StatusReasonBadRequest, "invalid object type: /, Kind="},
		{"p", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}", 400, metav1.StatusReasonBadRequest, "invalid object type: /v1, Kind=ConfigMap"},
		{"p", "apiVersion: v2\nkind: Pod\nmetadata: {name: p}", 400, metav1.StatusReasonBadRequest, "invalid object type: /v2, Kind=Pod"},
		{"p", "apiVersion: v1\nkind: Pod\nmetadata: {name: q}", 400, metav1.StatusReasonBadRequest, "the name of the object (q) does not match the name on the URL (p)"},
		{"q", "apiVersion: v1\nkind: Pod", 400, metav1.StatusReasonBadRequest, "name must be provided"},
		{"p", podHead + "spec: {colour: red}", 500, metav1.StatusReasonUnknown, "failed to create typed patch object (/p; /v1, Kind=Pod): .spec.colour: field not declared in schema"},
		{"p", podHead + "spec: {containers: [{name: a}, {name: a}]}", 500, metav1.StatusReasonUnknown, `duplicate entries for key [name="a"]`},
		{"p", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, managedFields: [{manager: me}]}", 400, metav1.StatusReasonBadRequest, "metadata.managedFields must be nil"},
		{"p", "apiVersion: v1\nkind: Pod\n" + fmt.Sprintf(uid, "p"), 422, metav1.StatusReasonInvalid, "metadata.uid: Invalid value"},
		{"q", "apiVersion: v1\nkind: Pod\n" + fmt.Sprintf(uid, "q"), 409, metav1.StatusReasonConflict, "uid mismatch: the provided object specified uid 6d0ee7d5-f2a0-4dd2-8ac8-0c2d4a9fca5f, and no existing object was found"},
		{"p", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, resourceVersion: '1'}", 409, metav1.StatusReasonConflict, "the object has been modified"},
		{"p", podHead + strings.Repeat("spec: {a: ", 1) + strings.Repeat("{a: ", 300) + strings.Repeat("}", 301), 400, metav1.StatusReasonBadRequest, "deeper than"},
	}
	for _, test := range tests {
		_, err := f.apply(t, "pods", test.name, "a", test.body)
		wantStatus(t, fmt.Sprintf("%.90s", test.body), err, test.code, test.reason, test.message)
	}
	_, err := f.apply(t, "pods", "q", "a/status", strings.ReplaceAll(podHead, "p}", "q}")+"status: {phase: Running}")
	wantStatus(t, "status of nothing", err, 404, metav1.StatusReasonNotFound, `pods "q" not found`)
}

// TestConflictsNameManagersAndFields: kubectl prints the message, programs read
// the causes.
func TestConflictsNameManagersAndFields(t *testing.T) {
	f := newFixture(t)
	f.create(t, "deployments", deployment("d", 1))
	_, err := f.of(t, "deployments").Update(t.Context(), "default", "d", func(current resource.Object) (resource.Object, error) {
		d := current.DeepCopyObject().(*appsv1.Deployment)
		d.Spec.Paused = true
		return d, nil
	}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{FieldManager: "editor"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.apply(t, "deployments", "d", "a", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 3, paused: false}")
	wantStatus(t, "apply", err, 409, metav1.StatusReasonConflict,
		"Apply failed with 2 conflicts: conflicts with \"editor\" using apps/v1:\n- .spec.paused\nconflicts with \"unknown\" using apps/v1:\n- .spec.replicas")
	var status *apierrors.StatusError
	if !errors.As(err, &status) || len(status.ErrStatus.Details.Causes) != 2 {
		t.Fatalf("%v has no causes", err)
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		want := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "editor" using apps/v1`, Field: ".spec.paused"}
		if cause.Field == ".spec.replicas" {
			want.Message, want.Field = `conflict with "unknown" using apps/v1`, cause.Field
		}
		if cause != want {
			t.Errorf("cause %+v, want %+v", cause, want)
		}
	}
}

// TestDryRunOfApplyWritesNothing, of a new object and of one that is there.
func TestDryRunOfApplyWritesNothing(t *testing.T) {
	f := newFixture(t)
	for _, existing := range []bool{false, true} {
		if existing {
			f.create(t, "pods", newPod("p", ""))
		}
		before, err := f.store.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		patch, err := patch.Parse(types.ApplyYAMLPatchType, []byte(podHead+"spec: {hostname: h}"))
		if err != nil {
			t.Fatal(err)
		}
		result, err := f.of(t, "pods").Patch(t.Context(), "default", "p", patch, registry.PatchOptions{
			WriteOptions: registry.WriteOptions{FieldManager: "a", DryRun: true}})
		if err != nil || result.Object.(*corev1.Pod).Spec.Hostname != "h" || result.Created == existing {
			t.Errorf("existing %v: %+v, %v", existing, result, err)
		}
		if after, err := f.store.Current(t.Context()); err != nil || after != before {
			t.Errorf("existing %v: the store moved from %d to %d (%v)", existing, before, after, err)
		}
	}
}
