package registry_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/registry/scale"
)

func (f *fixture) patch(ctx context.Context, t testing.TB, plural, name string, kind types.PatchType, body string) (*registry.Result, error) {
	t.Helper()
	patch, err := patch.Parse(kind, []byte(body))
	if err != nil {
		return nil, err
	}
	return f.of(t, plural).Patch(ctx, "default", name, patch, registry.PatchOptions{})
}

func TestPatchKinds(t *testing.T) {
	f := newFixture(t)
	p := newPod("a", "")
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d", Image: "j"})
	f.create(t, "pods", p)
	tests := []struct {
		kind types.PatchType
		body string
		want string // images
	}{
		{types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"d","image":"j2"}]}}`, "i,j2"},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/containers/0/name","value":"c"},{"op":"replace","path":"/spec/containers/0/image","value":"i2"}]`, "i2,j2"},
		{types.MergePatchType, `{"spec":{"containers":[{"name":"e","image":"k"}]}}`, "k"},
	}
	for _, test := range tests {
		result, err := f.patch(t.Context(), t, "pods", "a", test.kind, test.body)
		if err != nil {
			t.Errorf("%s: %v", test.kind, err)
			continue
		}
		var images []string
		for _, c := range result.Object.(*corev1.Pod).Spec.Containers {
			images = append(images, c.Image)
		}
		if got := strings.Join(images, ","); got != test.want {
			t.Errorf("%s: images %s, want %s", test.kind, got, test.want)
		}
	}
}

func TestPatchRefuses(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("a", "1"))
	f.create(t, "widgets", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}})
	before, err := f.store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	many := "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"x"},`, 10_000) + `{"op":"test","path":"/kind","value":"x"}]`
	grow := `[{"op":"add","path":"/data/x","value":"` + strings.Repeat("x", 1<<20) + `"},` +
		strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"/data/x","path":"/data/y"},`, 5), ",") + "]"
	tests := []struct {
		plural, name string
		kind         types.PatchType
		body         string
		code         int32
		reason       metav1.StatusReason
	}{
		{"configmaps", "b", types.MergePatchType, `{}`, 404, metav1.StatusReasonNotFound},
		{"configmaps", "a", types.JSONPatchType, `[{"op":"test","path":"/data/key","value":"2"}]`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.JSONPatchType, `[{"op":"remove","path":"/data/none"}]`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.JSONPatchType, `{"op":"remove"}`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.JSONPatchType, `[null]`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.JSONPatchType, `[{"op":"frob","path":"/data"}]`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.JSONPatchType, `[{"op":"replace","path":"","value":[]}]`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.JSONPatchType, `[{"op":"move","path":"/data"}]`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.JSONPatchType, `[{"op":"remove","path":1}]`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.JSONPatchType, many, 413, metav1.StatusReasonRequestEntityTooLarge},
		{"configmaps", "a", types.JSONPatchType, grow, 413, metav1.StatusReasonRequestEntityTooLarge},
		{"configmaps", "a", types.MergePatchType, `null`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.MergePatchType, `{"data":`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.MergePatchType, `{"data":7}`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.MergePatchType, `{"metadata":{"name":"b"}}`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.MergePatchType, `{"metadata":{"namespace":"b"}}`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.MergePatchType, `{"kind":"Pod"}`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", types.MergePatchType, `{"metadata":{"uid":"u"}}`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`, 409, metav1.StatusReasonConflict},
		{"configmaps", "a", types.MergePatchType, `{"metadata":{"labels":{"a b":"c"}}}`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.StrategicMergePatchType, `{"$patch":"nonsense"}`, 422, metav1.StatusReasonInvalid},
		{"configmaps", "a", types.ApplyYAMLPatchType, `{}`, 400, metav1.StatusReasonBadRequest},
		{"configmaps", "a", "text/plain", `{}`, 415, metav1.StatusReasonUnsupportedMediaType},
		{"widgets", "a", types.StrategicMergePatchType, `{}`, 415, metav1.StatusReasonUnsupportedMediaType},
	}
	for _, test := range tests {
		_, err := f.patch(t.Context(), t, test.plural, test.name, test.kind, test.body)
		body := test.body
		if len(body) > 60 {
			body = body[:60]
		}
		wantStatus(t, fmt.Sprintf("%s of %s %s", test.kind, test.plural, body), err, test.code, test.reason, "")
	}
	if after, err := f.store.Current(t.Context()); err != nil || after != before {
		t.Errorf("refused patches moved the store from %d to %d (%v)", before, after, err)
	}
}

// TestPatchWithoutVersionFollowsTheStrategy: a patch may take the version away, and only of some kinds
// is an object without one the current one.
func TestPatchWithoutVersionFollowsTheStrategy(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("a", "1"))
	f.create(t, "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	const whole = `[{"op":"replace","path":"","value":{"apiVersion":"v1","kind":"%s","metadata":{"name":"a"}}}]`
	for _, test := range []struct {
		plural string
		kind   types.PatchType
		body   string
		code   int32
	}{
		{"configmaps", types.MergePatchType, `{"metadata":{"resourceVersion":null}}`, 0},
		{"configmaps", types.JSONPatchType, fmt.Sprintf(whole, "ConfigMap"), 0},
		{"secrets", types.MergePatchType, `{"metadata":{"resourceVersion":null}}`, 422},
		{"secrets", types.MergePatchType, `{"metadata":{"resourceVersion":"0"}}`, 422},
		{"secrets", types.StrategicMergePatchType, `{"metadata":{"resourceVersion":null}}`, 422},
		{"secrets", types.JSONPatchType, `[{"op":"remove","path":"/metadata/resourceVersion"}]`, 422},
		{"secrets", types.JSONPatchType, fmt.Sprintf(whole, "Secret"), 422},
		{"secrets", types.MergePatchType, `{"metadata":{"labels":{"by":"merge"}}}`, 0},
		{"secrets", types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/by","value":"json"}]`, 0},
	} {
		what := fmt.Sprintf("%s of %s %s", test.kind, test.plural, test.body)
		_, err := f.patch(t.Context(), t, test.plural, "a", test.kind, test.body)
		if test.code == 0 && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if test.code != 0 {
			wantStatus(t, what, err, test.code, metav1.StatusReasonInvalid, `secrets "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
		}
	}
	apply, err := patch.Parse(types.ApplyYAMLPatchType, []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"of":"apply"}}}`))
	if err == nil {
		_, err = f.of(t, "secrets").Patch(t.Context(), "default", "a", apply, registry.PatchOptions{WriteOptions: by("applier")})
	}
	if err != nil {
		t.Errorf("apply: %v", err)
	}
}

// TestPatchesOfDifferentFieldsAllTakeEffect is what the retry is for.
func TestPatchesOfDifferentFieldsAllTakeEffect(t *testing.T) {
	const writers = 32
	f := newFixture(t)
	f.create(t, "configmaps", configMap("a", ""))
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if _, err := f.patch(t.Context(), t, "configmaps", "a", types.MergePatchType, fmt.Sprintf(`{"data":{"w%d":"x"}}`, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	result, err := f.patch(t.Context(), t, "configmaps", "a", types.MergePatchType, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(result.Object.(*corev1.ConfigMap).Data); n != writers+1 {
		t.Errorf("%d fields, want %d", n, writers+1)
	}
}

func TestScale(t *testing.T) {
	f := newFixture(t)
	first := f.create(t, "deployments", deployment("a", 1))
	r := f.of(t, "deployments")
	patch, err := patch.Parse(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := scale.Patch(t.Context(), r, "default", "a", patch, decodeScale, registry.PatchOptions{})
	if err != nil || shown.Spec.Replicas != 5 || shown.Status.Selector != "app=web" || shown.UID != first.Object.GetUID() {
		t.Errorf("patched scale %+v, %v", shown, err)
	}
	stale := shown.DeepCopy()
	stale.ResourceVersion = first.Object.GetResourceVersion()
	_, err = scale.Update(t.Context(), r, "default", "a", constant(stale), registry.WriteOptions{})
	wantStatus(t, "scale of an old version", err, 409, metav1.StatusReasonConflict, errModified)
	negative := shown.DeepCopy()
	negative.Spec.Replicas = -1
	_, err = scale.Update(t.Context(), r, "default", "a", constant(negative), registry.WriteOptions{})
	wantStatus(t, "negative scale", err, 422, metav1.StatusReasonInvalid, "spec.replicas")
	_, err = scale.Get(t.Context(), r, "default", "none")
	wantStatus(t, "scale of nothing", err, 404, metav1.StatusReasonNotFound, "not found")
	_, err = scale.Get(t.Context(), f.of(t, "pods"), "default", "a")
	wantStatus(t, "scale of a pod", err, 400, metav1.StatusReasonBadRequest, "no scale")
	got, err := scale.Get(t.Context(), r, "default", "a")
	if err != nil || got.Spec.Replicas != 5 || got.ResourceVersion != shown.ResourceVersion {
		t.Errorf("scale is %+v, %v", got, err)
	}
}

// FuzzPatch wants of any patch that it is applied or refused with a 4xx, and
// that a refused one changes nothing.
func FuzzPatch(f *testing.F) {
	for i, seed := range []string{
		`[{"op":"add","path":"/data/x","value":"y"}]`, `[{"op":"move","from":"/data","path":"/data/x"}]`, `[{"op":"copy","from":"","path":"/data/x"}]`,
		`[{"op":"test","path":"/metadata/annotations","value":null}]`, `[{"op":"remove","path":"/data/-1"}]`, `{"metadata":{"finalizers":["a/b"],"deletionTimestamp":"x"}}`,
		`{"data":null,"kind":null,"metadata":null}`, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"u"}]}}`,
		`{"$setElementOrder/metadata":[1],"$retainKeys":["x"],"$deleteFromPrimitiveList/finalizers":["x"]}`,
	} {
		f.Add(uint8(i), seed)
	}
	fix := newFixture(f)
	kinds := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType}
	count := 0
	f.Fuzz(func(t *testing.T, kind uint8, body string) {
		count++
		name := "fuzz" + strconv.Itoa(count)
		created := fix.create(t, "configmaps", configMap(name, "1"))
		_, err := fix.patch(t.Context(), t, "configmaps", name, kinds[int(kind)%len(kinds)], body)
		if err == nil {
			return
		}
		status, ok := err.(apierrors.APIStatus) //nolint:errorlint // every error of the package is one
		if !ok || status.Status().Code >= 500 {
			t.Errorf("%v", err)
		}
		kv, err := fix.store.Get(t.Context(), "/registry/configmaps/default/"+name, 0)
		if err != nil || kv.Modified != created.Revision {
			t.Errorf("a refused patch left revision %d, was %d (%v)", kv.Modified, created.Revision, err)
		}
	})
}
