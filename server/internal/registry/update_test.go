package registry_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// changing returns an Updater that changes a copy of the current object.
func changing[T resource.Object](change func(T)) registry.Updater {
	return func(current resource.Object) (resource.Object, error) {
		obj := current.DeepCopyObject().(T)
		change(obj)
		return obj, nil
	}
}

func replacing(obj resource.Object) registry.Updater {
	return func(resource.Object) (resource.Object, error) { return obj.DeepCopyObject().(resource.Object), nil }
}

func TestUpdateGuardsVersionAndUID(t *testing.T) {
	f := newFixture(t)
	first := f.create(t, "configmaps", configMap("a", "1"))
	version := first.Object.GetResourceVersion()
	tests := []struct {
		what, version, uid, name string
		code                     int32
		reason                   metav1.StatusReason
		message                  string
	}{
		{"old version", "1", "", "a", 409, metav1.StatusReasonConflict,
			`Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`},
		{"no version at all", "xyz", "", "a", 400, metav1.StatusReasonBadRequest, "is not a version"},
		{"another uid", "", "someone", "a", 409, metav1.StatusReasonConflict, "Precondition failed: UID in precondition: someone"},
		{"missing", "", "", "b", 404, metav1.StatusReasonNotFound, `configmaps "b" not found`},
	}
	for _, test := range tests {
		obj := configMap(test.name, "2")
		obj.ResourceVersion, obj.UID = test.version, apitypes.UID(test.uid)
		_, err := f.of(t, "configmaps").Update(t.Context(), "default", test.name, replacing(obj), registry.UpdateOptions{})
		wantStatus(t, test.what, err, test.code, test.reason, test.message)
	}
	current := configMap("a", "2")
	current.ResourceVersion = version
	result, err := f.of(t, "configmaps").Update(t.Context(), "default", "a", replacing(current), registry.UpdateOptions{})
	if err != nil || result.Revision <= first.Revision || result.Object.GetUID() != first.Object.GetUID() {
		t.Errorf("update of the current version: %+v, %v", result, err)
	}
}

func TestUpdateWithoutVersionFollowsTheStrategy(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("a", "1"))
	if _, err := f.of(t, "configmaps").Update(t.Context(), "default", "a", replacing(configMap("a", "2")), registry.UpdateOptions{}); err != nil {
		t.Errorf("unconditional update where it is allowed: %v", err)
	}
	f.create(t, "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	_, err := f.of(t, "secrets").Update(t.Context(), "default", "a", replacing(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), registry.UpdateOptions{})
	wantStatus(t, "unconditional update", err, 422, metav1.StatusReasonInvalid, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
}

func TestUpdateCreatesWhereTheStrategySays(t *testing.T) {
	f := newFixture(t)
	result, err := f.of(t, "endpoints").Update(t.Context(), "default", "a", replacing(&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), registry.UpdateOptions{})
	if err != nil || !result.Created || result.Object.GetUID() == "" {
		t.Errorf("upsert: %+v, %v", result, err)
	}
}

// TestUpdateCreatesWhateverTheVersion: of an object that is gone, the version does not matter, and a dry run
// shows it as it was sent. An object of which the client knows the uid is another one.
func TestUpdateCreatesWhateverTheVersion(t *testing.T) {
	f := newFixture(t)
	update := func(name, version, uid string, dryRun bool) (*registry.Result, error) {
		sent := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, UID: apitypes.UID(uid)}}
		return f.of(t, "endpoints").Update(t.Context(), "default", name, replacing(sent), registry.UpdateOptions{WriteOptions: registry.WriteOptions{DryRun: dryRun}})
	}
	for _, version := range []string{"", "0", "3"} {
		result, err := update("tried", version, "", true)
		if err != nil || !result.Created || result.Object.GetResourceVersion() != version {
			t.Errorf("a dry run with version %q: %+v, %v", version, result, err)
		}
		result, err = update("made"+version, version, "", false)
		if err != nil || !result.Created || result.Object.GetResourceVersion() != fmt.Sprint(int64(result.Revision)) {
			t.Errorf("with version %q: %+v, %v", version, result, err)
		}
	}
	_, err := update("b", "new", "", false)
	wantStatus(t, "what is no version", err, 400, metav1.StatusReasonBadRequest, "is not a version")
	_, err = update("b", "", "u", false)
	wantStatus(t, "a uid", err, 409, metav1.StatusReasonConflict, "Precondition failed: UID in precondition: u, UID in object meta: ")
}

func TestUpdateThatChangesNothingIsNoWrite(t *testing.T) {
	f := newFixture(t)
	first := f.create(t, "deployments", deployment("a", 1))
	result, err := f.of(t, "deployments").Update(t.Context(), "default", "a", changing(func(d *appsv1.Deployment) {
		d.CreationTimestamp, d.Generation, d.Status.Replicas = metav1.Time{}, 99, 3 // none of them the client's
	}), registry.UpdateOptions{})
	if err != nil || result.Revision != first.Revision || string(result.JSON) != string(first.JSON) {
		t.Errorf("no-op update gave revision %d, had %d (%v)", result.Revision, first.Revision, err)
	}
	if now, err := f.store.Current(t.Context()); err != nil || now != first.Revision {
		t.Errorf("the store is at %d, was at %d (%v)", now, first.Revision, err)
	}
}

func TestSpecAndStatusAreSeparate(t *testing.T) {
	f := newFixture(t)
	f.create(t, "deployments", deployment("a", 1))
	r := f.of(t, "deployments")
	both := changing(func(d *appsv1.Deployment) {
		replicas := *d.Spec.Replicas + 1
		d.Spec.Replicas, d.Status.Replicas = &replicas, d.Status.Replicas+10
		d.Finalizers = append(d.Finalizers, fmt.Sprintf("example.com/f%d", replicas))
	})
	result, err := r.Update(t.Context(), "default", "a", both, registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := result.Object.(*appsv1.Deployment)
	if *got.Spec.Replicas != 2 || got.Status.Replicas != 0 || got.Generation != 2 || len(got.Finalizers) != 1 {
		t.Errorf("update gave %d replicas, status %d, generation %d, finalizers %v", *got.Spec.Replicas, got.Status.Replicas, got.Generation, got.Finalizers)
	}
	result, err = r.UpdateStatus(t.Context(), "default", "a", both, registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got = result.Object.(*appsv1.Deployment)
	if *got.Spec.Replicas != 2 || got.Status.Replicas != 10 || got.Generation != 2 || len(got.Finalizers) != 2 {
		t.Errorf("status update gave %d replicas, status %d, generation %d, finalizers %v", *got.Spec.Replicas, got.Status.Replicas, got.Generation, got.Finalizers)
	}
	_, err = f.of(t, "configmaps").UpdateStatus(t.Context(), "default", "a", both, registry.UpdateOptions{})
	wantStatus(t, "status of a kind without", err, 400, metav1.StatusReasonBadRequest, "no status")
}

func TestSpecAndStatusOfCustomResources(t *testing.T) {
	f := newFixture(t)
	f.create(t, "widgets", &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": int64(1)}, "status": map[string]any{"x": int64(1)},
	}})
	r := f.of(t, "widgets")
	both := changing(func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "size")
		_ = unstructured.SetNestedField(u.Object, int64(2), "status", "x")
		u.SetLabels(map[string]string{"l": "1"})
	})
	steps := []struct {
		do                 func(context.Context, string, string, registry.Updater, registry.UpdateOptions) (*registry.Result, error)
		spec, status, want string
		labels             int
	}{
		{do: r.UpdateStatus, want: "1/2 generation 1", labels: 0},
		{do: r.Update, want: "2/2 generation 2", labels: 1},
	}
	for i, step := range steps {
		result, err := step.do(t.Context(), "default", "a", both, registry.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u := result.Object.(*unstructured.Unstructured)
		spec, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
		status, _, _ := unstructured.NestedInt64(u.Object, "status", "x")
		if got := fmt.Sprintf("%d/%d generation %d", spec, status, u.GetGeneration()); got != step.want || len(u.GetLabels()) != step.labels {
			t.Errorf("step %d: %s with labels %v, want %s with %d", i, got, u.GetLabels(), step.want, step.labels)
		}
	}
}

// TestNoUpdateIsLost has many writers count in one object. Each increment that
// was acknowledged must be in the final state, with every kind of write that
// reads before it writes.
func TestNoUpdateIsLost(t *testing.T) {
	const writers, each = 16, 25
	f := newFixture(t)
	f.create(t, "configmaps", configMap("counter", "0"))
	r := f.of(t, "configmaps")
	increment := changing(func(c *corev1.ConfigMap) {
		n, _ := strconv.Atoi(c.Data["key"])
		c.Data = map[string]string{"key": strconv.Itoa(n + 1)}
	})
	var wg sync.WaitGroup
	var mu sync.Mutex
	acknowledged := 0
	seen := map[storage.Revision]bool{}
	for range writers {
		wg.Go(func() {
			for range each {
				result, err := r.Update(t.Context(), "default", "counter", increment, registry.UpdateOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acknowledged++
				if seen[result.Revision] {
					t.Errorf("two writes were acknowledged with revision %d", result.Revision)
				}
				seen[result.Revision] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	final, err := r.Update(t.Context(), "default", "counter", changing(func(*corev1.ConfigMap) {}), registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := final.Object.(*corev1.ConfigMap).Data["key"]; got != strconv.Itoa(acknowledged) || acknowledged != writers*each {
		t.Errorf("the counter is %s after %d acknowledged increments of %d", got, acknowledged, writers*each)
	}
}

func TestVersionedWritersConflict(t *testing.T) {
	f := newFixture(t)
	first := f.create(t, "configmaps", configMap("a", "0"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		wg.Go(func() {
			obj := configMap("a", strconv.Itoa(i+1))
			obj.ResourceVersion = first.Object.GetResourceVersion()
			_, err := f.of(t, "configmaps").Update(t.Context(), "default", "a", replacing(obj), registry.UpdateOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d writers of one version won", won)
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
}
