package registry_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/registry/pod"
	"github.com/levelwire/levelwire/server/internal/registry/scale"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

func by(manager string) registry.WriteOptions { return registry.WriteOptions{FieldManager: manager} }

// edit is an Update in the name of a manager.
func (f *fixture) edit(t testing.TB, plural, name, manager string, change func(resource.Object)) *registry.Result {
	t.Helper()
	manager, subresource, _ := strings.Cut(manager, "/")
	updater := func(current resource.Object) (resource.Object, error) {
		obj := current.DeepCopyObject().(resource.Object)
		change(obj)
		return obj, nil
	}
	r, opts := f.of(t, plural), registry.UpdateOptions{WriteOptions: by(manager), Unconditional: true}
	write := func() (*registry.Result, error) { return r.Update(t.Context(), "default", name, updater, opts) }
	if subresource != "" {
		write = func() (*registry.Result, error) {
			return r.UpdateSubresource(t.Context(), "default", name, subresource, updater, opts)
		}
	}
	result, err := write()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func wantOwners(t *testing.T, obj resource.Object, want ...string) {
	t.Helper()
	if got := owners(obj); got != strings.Join(want, "\n") {
		t.Errorf("owners\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestWhoWritesOwns goes through the verbs.
func TestWhoWritesOwns(t *testing.T) {
	f := newFixture(t)
	created, err := f.of(t, "pods").Create(t.Context(), "default", newPod("p", ""), by("creator"))
	if err != nil {
		t.Fatal(err)
	}
	own := `creator Update {"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}`
	wantOwners(t, created.Object, own)
	entry := created.Object.GetManagedFields()[0]
	if entry.APIVersion != "v1" || entry.FieldsType != "FieldsV1" || !entry.Time.Time.Equal(f.clock.Now()) {
		t.Errorf("entry %+v", entry)
	}

	f.clock.Advance(time.Minute)
	same := f.edit(t, "pods", "p", "other", func(resource.Object) {})
	wantOwners(t, same.Object, own)

	edited := f.edit(t, "pods", "p", "editor", func(obj resource.Object) { obj.(*corev1.Pod).Spec.Containers[0].Image = "j" })
	without := strings.Replace(own, `"f:image":{},`, "", 1)
	image := `editor Update {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:image":{}}}}}`
	wantOwners(t, edited.Object, without, image)

	status := f.edit(t, "pods", "p", "kubelet/status", func(obj resource.Object) {
		obj.(*corev1.Pod).Status.Phase = corev1.PodRunning
		obj.(*corev1.Pod).Spec.Containers[0].Image = "ignored"
	})
	phase := `kubelet Update/status {"f:status":{"f:phase":{}}}`
	wantOwners(t, status.Object, without, image, phase)

	bound, err := pod.Bind(t.Context(), f.of(t, "pods"), "default", "p", &corev1.Binding{Target: corev1.ObjectReference{Name: "n"}}, by("scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, bound.Object, without, image, phase)

	patched, err := f.patch(t.Context(), t, "pods", "p", types.MergePatchType, `{"metadata":{"labels":{"app":null,"x":"y"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, patched.Object, `creator Update {"f:metadata":{"f:labels":{}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:resources":{}}}}}`, image, phase,
		`unknown Update {"f:metadata":{"f:labels":{"f:x":{}}}}`)

	if err := deleteGracefully(f, t); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, f.get(t, "pods", "p"), strings.Split(owners(patched.Object), "\n")...)
}

func deleteGracefully(f *fixture, t *testing.T) error {
	_, err := f.of(t, "pods").Delete(t.Context(), "default", "p", nil)
	return err
}

// TestTimesChangeWithTheFields and not with every write.
func TestTimesChangeWithTheFields(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("c", "1"))
	made := f.clock.Now()
	f.clock.Advance(time.Minute)
	at := func(r *registry.Result) time.Time { return r.Object.GetManagedFields()[0].Time.UTC() }
	if got := at(f.edit(t, "configmaps", "c", "unknown", func(resource.Object) {})); !got.Equal(made) {
		t.Errorf("after a write of nothing: %v, want %v", got, made)
	}
	changed := f.edit(t, "configmaps", "c", "unknown", func(obj resource.Object) { obj.(*corev1.ConfigMap).Data["key"] = "2" })
	if got := at(changed); !got.Equal(f.clock.Now()) {
		t.Errorf("after a change: %v, want %v", got, f.clock.Now())
	}
}

// TestManagedFieldsThatClientsSend: none and null keep them, an empty list and a
// list of one empty entry reset them, others replace them.
func TestManagedFieldsThatClientsSend(t *testing.T) {
	own := `unknown Update {"f:data":{".":{},"f:key":{}}}`
	theirs := metav1.ManagedFieldsEntry{
		Manager: "theirs", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`),
	}
	tests := []struct {
		name string
		sent []metav1.ManagedFieldsEntry
		want string
	}{
		{"none", nil, own},
		{"an empty list", []metav1.ManagedFieldsEntry{}, ""},
		{"an empty entry", []metav1.ManagedFieldsEntry{{}}, ""},
		{"others", []metav1.ManagedFieldsEntry{theirs}, `theirs Update {"f:data":{"f:key":{}}}`},
	}
	for _, test := range tests {
		f := newFixture(t)
		f.create(t, "configmaps", configMap("c", "1"))
		result := f.edit(t, "configmaps", "c", "editor", func(obj resource.Object) { obj.SetManagedFields(test.sent) })
		if got := owners(result.Object); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	f := newFixture(t)
	f.create(t, "pods", newPod("p", ""))
	kept := f.edit(t, "pods", "p", "editor/status", func(obj resource.Object) { obj.SetManagedFields([]metav1.ManagedFieldsEntry{}) })
	if len(kept.Object.GetManagedFields()) != 1 {
		t.Errorf("a status cannot reset the managedFields, they are %v", owners(kept.Object))
	}
}

// TestObjectsWithoutOwnersAreAppliedTo: what was there before belongs to
// before-first-apply, and nothing is tracked until then.
func TestObjectsWithoutOwnersAreAppliedTo(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("c", "1"))
	f.edit(t, "configmaps", "c", "editor", func(obj resource.Object) { obj.SetManagedFields([]metav1.ManagedFieldsEntry{}) })
	untracked := f.edit(t, "configmaps", "c", "editor", func(obj resource.Object) { obj.(*corev1.ConfigMap).Data["x"] = "y" })
	wantOwners(t, untracked.Object)
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
	_, err := f.apply(t, "configmaps", "c", "a", head+"data: {key: '2'}")
	wantStatus(t, "apply", err, 409, metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.key`)
	applied, err := f.apply(t, "configmaps", "c", "a", head+"data: {z: '2'}")
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, applied.Object, `a Apply {"f:data":{"f:z":{}}}`, `before-first-apply Update {"f:data":{".":{},"f:key":{},"f:x":{}}}`)
}

// TestClientSideApplyIsTakenOver by kubectl's server-side apply, for the fields
// that the annotation says are its own.
func TestClientSideApplyIsTakenOver(t *testing.T) {
	f := newFixture(t)
	obj := configMap("c", "1")
	obj.Data["other"] = "1"
	obj.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"key":"1"}}`}
	if _, err := f.of(t, "configmaps").Create(t.Context(), "default", obj, by("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\n"
	_, err := f.apply(t, "configmaps", "c", "someone", head+"data: {key: '2'}")
	wantStatus(t, "another manager", err, 409, metav1.StatusReasonConflict, `"kubectl-client-side-apply" using v1: .data.key`)
	_, err = f.apply(t, "configmaps", "c", "kubectl", head+"data: {other: '2'}")
	wantStatus(t, "a field that was not applied", err, 409, metav1.StatusReasonConflict, ".data.other")
	applied, err := f.apply(t, "configmaps", "c", "kubectl", head+"data: {key: '2'}")
	if err != nil {
		t.Fatal(err)
	}
	if got := applied.Object.(*corev1.ConfigMap); got.Data["key"] != "2" || !strings.Contains(got.Annotations[corev1.LastAppliedConfigAnnotation], `"key":"2"`) {
		t.Errorf("%v %v", got.Data, got.Annotations)
	}
}

// TestStatusIsAppliedOnItsOwn: each endpoint owns what it writes.
func TestStatusIsAppliedOnItsOwn(t *testing.T) {
	f := newFixture(t)
	if _, err := f.apply(t, "pods", "p", "a", podHead+"spec: {hostname: h}\nstatus: {phase: Failed}"); err != nil {
		t.Fatal(err)
	}
	result, err := f.apply(t, "pods", "p", "b/status", podHead+"spec: {hostname: other}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}")
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, result.Object, `a Apply {"f:spec":{"f:hostname":{}}}`,
		`b Apply/status {"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}},"f:phase":{}}}`)
	p := result.Object.(*corev1.Pod)
	if p.Spec.Hostname != "h" || p.Status.Phase != corev1.PodRunning {
		t.Errorf("hostname %s, phase %s", p.Spec.Hostname, p.Status.Phase)
	}
	if again, err := f.apply(t, "pods", "p", "a", podHead+"spec: {hostname: h}\nstatus: {phase: Failed}"); err != nil || again.Revision != result.Revision {
		t.Errorf("a status in the main endpoint is not a change: %d after %d, %v", again.Revision, result.Revision, err)
	}
	_, err = f.apply(t, "pods", "p", "c/status", podHead+"status: {phase: Failed}")
	wantStatus(t, "another's status", err, 409, metav1.StatusReasonConflict, `conflict with "b" with subresource "status": .status.phase`)
}

// TestReplicasAreOwnedThroughTheScale in the object, where they are.
func TestReplicasAreOwnedThroughTheScale(t *testing.T) {
	f := newFixture(t)
	head := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"
	if _, err := f.apply(t, "deployments", "d", "a", head+"spec: {replicas: 1, selector: {matchLabels: {app: web}}}"); err != nil {
		t.Fatal(err)
	}
	r := f.of(t, "deployments")
	scaled := func(current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		wanted := current.DeepCopy()
		wanted.Spec.Replicas = 5
		return wanted, nil
	}
	if _, err := scale.Update(t.Context(), r, "default", "d", scaled, by("scaler")); err != nil {
		t.Fatal(err)
	}
	selector := `a Apply {"f:spec":{"f:selector":{}}}`
	wantOwners(t, f.get(t, "deployments", "d"), selector, `scaler Update/scale {"f:spec":{"f:replicas":{}}}`)
	_, err := f.apply(t, "deployments", "d", "a", head+"spec: {replicas: 1, selector: {matchLabels: {app: web}}}")
	wantStatus(t, "apply", err, 409, metav1.StatusReasonConflict, `conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas`)

	patch, err := patch.Parse(types.ApplyYAMLPatchType, []byte("apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: d}\nspec: {replicas: 7}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = scale.Patch(t.Context(), r, "default", "d", patch, decodeScale, registry.PatchOptions{WriteOptions: by("b")})
	wantStatus(t, "apply a scale", err, 409, metav1.StatusReasonConflict, ".spec.replicas")
	shown, err := scale.Patch(t.Context(), r, "default", "d", patch, decodeScale, registry.PatchOptions{WriteOptions: by("b"), Force: true})
	if err != nil || shown.Spec.Replicas != 7 {
		t.Fatalf("%+v, %v", shown, err)
	}
	wantOwners(t, f.get(t, "deployments", "d"), `b Apply/scale {"f:spec":{"f:replicas":{}}}`, selector)
}

// TestReplicasMayBeElsewhere: a custom resource says where they are.
func TestReplicasMayBeElsewhere(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) {
		c.Resources.(*resource.Table).Lookup("example.com", "v1", "widgets").Scale = &resource.Scale{
			Get: func(obj resource.Object) (*int32, int32, string, error) {
				size, _, err := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "size")
				return new(int32(size)), 0, "", err
			},
			Set: func(obj resource.Object, replicas int32) error {
				return unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, int64(replicas), "spec", "size")
			},
			ReplicasPath: []string{"spec", "size"},
		}
	})
	if _, err := f.apply(t, "widgets", "w", "a", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}"); err != nil {
		t.Fatal(err)
	}
	_, err := scale.Update(t.Context(), f.of(t, "widgets"), "default", "w", func(current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		wanted := current.DeepCopy()
		wanted.Spec.Replicas = 5
		return wanted, nil
	}, by("scaler"))
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, f.get(t, "widgets", "w"), `a Apply {"f:spec":{}}`, `scaler Update/scale {"f:spec":{"f:size":{}}}`)
}

// TestOldUpdatersAreMerged once there are more than ten.
func TestOldUpdatersAreMerged(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("c", "1"))
	var last *registry.Result
	for i := range 12 {
		f.clock.Advance(time.Second)
		last = f.edit(t, "configmaps", "c", fmt.Sprint("m", i), func(obj resource.Object) { obj.(*corev1.ConfigMap).Data[fmt.Sprint("k", i)] = "x" })
	}
	if n := len(last.Object.GetManagedFields()); n != 10 {
		t.Errorf("%d entries, want 10", n)
	}
	if got := owners(last.Object); !strings.HasPrefix(got, `ancient-changes Update {"f:data":{".":{},"f:k0":{},"f:k1":{},"f:k2":{},"f:key":{}}}`) {
		t.Error(got)
	}
}

// small is a store that takes only small values.
type small struct {
	storage.Store
	limit int
}

func (s small) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if len(value) > s.limit {
		return 0, storage.ErrTooLarge
	}
	return s.Store.Create(ctx, key, value, ttl)
}

// TestWhatOnlyManagedFieldsMakeTooLargeIsWritten, without them.
func TestWhatOnlyManagedFieldsMakeTooLargeIsWritten(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f := newFixtureOver(t, small{store, 2200})
	large := configMap("c", strings.Repeat("x", 500))
	for i := range 30 {
		large.Data[fmt.Sprint("a-long-name-of-a-key-", i)] = "value"
	}
	result, err := f.of(t, "configmaps").Create(t.Context(), "default", large, by("a"))
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, result.Object)
	_, err = f.of(t, "configmaps").Create(t.Context(), "default", configMap("d", strings.Repeat("x", 5000)), by("a"))
	wantStatus(t, "too large on its own", err, 413, metav1.StatusReasonRequestEntityTooLarge, "")
}

// TestOwnershipAcrossVersions: a manager that wrote in one version owns fields
// there, and conflicts with a manager that applies in another.
func TestOwnershipAcrossVersions(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	r := func(version string) registry.Registry {
		r, ok := f.Lookup("autoscaling", version, "horizontalpodautoscalers")
		if !ok {
			t.Fatalf("autoscaling/%s is not served", version)
		}
		return r
	}
	apply := func(version, manager, spec string) (*registry.Result, error) {
		patch, err := patch.Parse(types.ApplyYAMLPatchType, []byte("apiVersion: autoscaling/"+version+"\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: "+spec))
		if err != nil {
			t.Fatal(err)
		}
		return r(version).Patch(t.Context(), "default", "h", patch, registry.PatchOptions{WriteOptions: by(manager)})
	}
	target := "{maxReplicas: 5, minReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}"
	if _, err := apply("v1", "a", target); err != nil {
		t.Fatal(err)
	}
	_, err := apply("v2", "b", "{maxReplicas: 6}")
	wantStatus(t, "v2 against v1", err, 409, metav1.StatusReasonConflict, `conflict with "a": .spec.maxReplicas`)
	result, err := apply("v2", "a", strings.Replace(target, "minReplicas: 1, ", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, result.Object, `a Apply {"f:spec":{"f:maxReplicas":{},"f:scaleTargetRef":{"f:apiVersion":{},"f:kind":{},"f:name":{}}}}`)
	if got := result.Object.GetManagedFields()[0].APIVersion; got != "autoscaling/v2" {
		t.Errorf("the entry is of %s", got)
	}
}

// TestCustomResourcesAreMergedByTheirSchema, which may make a list associative.
func TestCustomResourcesAreMergedByTheirSchema(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) {
		table := c.Resources.(*resource.Table)
		table.Lookup("example.com", "v1", "widgets").TypeConverter = widgetTypes
	})
	head := "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
	if _, err := f.apply(t, "widgets", "w", "a", head+"spec: {parts: [{name: a, size: 1}], plain: [1]}"); err != nil {
		t.Fatal(err)
	}
	result, err := f.apply(t, "widgets", "w", "b", head+"spec: {parts: [{name: b, size: 2}]}")
	if err != nil {
		t.Fatal(err)
	}
	parts, _, err := unstructured.NestedSlice(result.Object.(*unstructured.Unstructured).Object, "spec", "parts")
	if err != nil || len(parts) != 2 {
		t.Errorf("parts %v, %v", parts, err)
	}
	_, err = f.apply(t, "widgets", "w", "b", head+"spec: {plain: [2]}")
	wantStatus(t, "a list without keys", err, 409, metav1.StatusReasonConflict, ".spec.plain")
	status := f.edit(t, "widgets", "w", "c/status", func(obj resource.Object) {
		obj.(*unstructured.Unstructured).Object["status"] = map[string]any{"ready": true}
		obj.SetLabels(map[string]string{"a": "b"})
	})
	if got := owners(status.Object); !strings.Contains(got, `c Update/status {"f:status":{".":{},"f:ready":{}}}`) {
		t.Error(got)
	}
}

func widgetTypes() (managedfields.TypeConverter, error) {
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
	}
	scalar := func(of string) spec.Schema { return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{of}}} }
	list := func(of spec.Schema, extensions spec.Extensions) spec.Schema {
		return spec.Schema{
			VendorExtensible: spec.VendorExtensible{Extensions: extensions},
			SchemaProps:      spec.SchemaProps{Type: []string{"array"}, Items: &spec.SchemaOrArray{Schema: &of}},
		}
	}
	metadata := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, AdditionalProperties: &spec.SchemaOrBool{Allows: true}}}
	widget := object(map[string]spec.Schema{
		"apiVersion": scalar("string"), "kind": scalar("string"), "metadata": metadata,
		"spec": object(map[string]spec.Schema{
			"parts": list(object(map[string]spec.Schema{"name": scalar("string"), "size": scalar("integer")}),
				spec.Extensions{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"}}),
			"plain": list(scalar("integer"), nil),
		}),
		"status": object(map[string]spec.Schema{"ready": scalar("boolean")}),
	})
	widget.Extensions = spec.Extensions{"x-kubernetes-group-version-kind": []any{
		map[string]any{"group": "example.com", "version": "v1", "kind": "Widget"},
	}}
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"com.example.v1.Widget": &widget}, false)
}

// TestRequestsForCertificatesHaveFewOwners: nobody owns what a request asks for, nor conditions that
// come with the status; who judges it owns the conditions, and who signs it the certificate.
func TestRequestsForCertificatesHaveFewOwners(t *testing.T) {
	f, _ := builtinFixture(t)
	res := builtin.Table().Lookup("certificates.k8s.io", "v1", "certificatesigningrequests")
	body, err := os.ReadFile("../resource/builtin/testdata/signingrequest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	request, _, _, err := res.DecodeBody(resource.MediaTypeYAML, body)
	if err != nil {
		t.Fatal(err)
	}
	request.SetLabels(map[string]string{"a": "b"})
	r, _ := f.Lookup(res.Group, res.Version, res.Plural)
	created, err := r.Create(t.Context(), "", request, by("asker"))
	if err != nil {
		t.Fatal(err)
	}
	labels := `asker Update {"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`
	wantOwners(t, created.Object, labels)

	write := func(subresource, manager string, change func(*certificatesv1.CertificateSigningRequest)) *registry.Result {
		t.Helper()
		result, err := r.UpdateSubresource(t.Context(), "", request.GetName(), subresource, func(current resource.Object) (resource.Object, error) {
			obj := current.DeepCopyObject().(*certificatesv1.CertificateSigningRequest)
			change(obj)
			return obj, nil
		}, registry.UpdateOptions{WriteOptions: by(manager), Unconditional: true})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	condition := func(kind certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "R", Message: "m"}
	}
	approved := write("approval", "judge", func(r *certificatesv1.CertificateSigningRequest) {
		r.Status.Conditions = append(r.Status.Conditions, condition(certificatesv1.CertificateApproved))
	})
	judged := `judge Update/approval {"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Approved\"}":{".":{},"f:lastTransitionTime":{},"f:lastUpdateTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`
	wantOwners(t, approved.Object, labels, judged)

	failed := write("status", "signer", func(r *certificatesv1.CertificateSigningRequest) {
		r.Status.Conditions = append(r.Status.Conditions, condition(certificatesv1.CertificateFailed))
	})
	if n := len(failed.Object.(*certificatesv1.CertificateSigningRequest).Status.Conditions); n != 2 {
		t.Errorf("%d conditions, want both", n)
	}
	wantOwners(t, failed.Object, labels, judged)
}
