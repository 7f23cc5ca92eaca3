package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/pod"
	"github.com/levelwire/levelwire/server/internal/registry/scale"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// withHooks returns a fixture whose writes pass one hook of each phase. Its own writes
// are not seen.
func withHooks(t *testing.T, mutate, validate registry.Admission) *fixture {
	t.Helper()
	began := false
	guard := func(hook registry.Admission) registry.Admission {
		return func(ctx context.Context, q *registry.Request) error {
			if hook == nil || !began {
				return nil
			}
			return hook(ctx, q)
		}
	}
	f := newFixture(t, func(c *registry.Config) { c.Admission = append(c.Admission, guard(mutate)) })
	f.Validate(guard(validate))
	began = true
	return f
}

// TestAdmissionHasTwoPhases checks what the hooks of each phase see, and that an object
// that a hook has replaced is prepared like a client's.
func TestAdmissionHasTwoPhases(t *testing.T) {
	var seen []string
	f := withHooks(t, func(ctx context.Context, q *registry.Request) error {
		seen = append(seen, "mutate")
		cm, ok := q.Object.(*corev1.ConfigMap)
		if !ok {
			return nil
		}
		changed := cm.DeepCopy()
		changed.UID, changed.ManagedFields, changed.Generation = "", nil, 17
		changed.Labels = map[string]string{"by": "hook"}
		return q.Replace(ctx, changed)
	}, func(_ context.Context, q *registry.Request) error {
		seen = append(seen, "validate "+q.Object.GetLabels()["by"])
		if q.Object.GetUID() == "" {
			t.Error("the uid is missing")
		}
		return nil
	})
	created := f.create(t, "configmaps", configMap("c", "x"))
	if want := []string{"mutate", "validate hook"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if o := created.Object; o.GetLabels()["by"] != "hook" || len(o.GetManagedFields()) == 0 || o.GetGeneration() == 17 {
		t.Errorf("created %v", o)
	}
	stored, err := f.of(t, "configmaps").Get(t.Context(), "default", "c")
	if err != nil || stored.GetLabels()["by"] != "hook" || stored.GetUID() != created.Object.GetUID() {
		t.Errorf("stored %v %v", stored, err)
	}
}

// TestObjectsAreValidatedBetweenThePhases shows a validating hook nothing that is invalid.
func TestObjectsAreValidatedBetweenThePhases(t *testing.T) {
	f := withHooks(t, func(_ context.Context, q *registry.Request) error {
		q.Object.SetLabels(map[string]string{"not a label": ""})
		return nil
	}, func(context.Context, *registry.Request) error {
		t.Error("asked about an invalid object")
		return nil
	})
	_, err := f.of(t, "configmaps").Create(t.Context(), "default", configMap("c", "x"), registry.WriteOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("%v, want 422", err)
	}
}

// TestRefusedByTheSecondPhase gives back what the first has claimed, and writes nothing.
func TestRefusedByTheSecondPhase(t *testing.T) {
	var outcomes []registry.Outcome
	f := withHooks(t, func(_ context.Context, q *registry.Request) error {
		q.Finally(func(_ context.Context, outcome registry.Outcome) { outcomes = append(outcomes, outcome) })
		return nil
	}, func(_ context.Context, q *registry.Request) error {
		return apierrors.NewForbidden(q.Resource.GroupResource(), q.Name, errors.New("no"))
	})
	_, err := f.of(t, "configmaps").Create(t.Context(), "default", configMap("c", "x"), registry.WriteOptions{})
	if !apierrors.IsForbidden(err) || !slices.Equal(outcomes, []registry.Outcome{registry.Refused}) {
		t.Errorf("%v, outcomes %v", err, outcomes)
	}
	if _, err := f.of(t, "configmaps").Get(t.Context(), "default", "c"); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want 404", err)
	}
}

// TestWhatAdmissionIsTold lists the requests that each verb becomes.
func TestWhatAdmissionIsTold(t *testing.T) {
	var seen []string
	record := func(_ context.Context, q *registry.Request) error {
		obj, old, err := q.Shown()
		if err != nil {
			return err
		}
		describe := func(o resource.Object) string {
			if o == nil {
				return "-"
			}
			return strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
		}
		options := strings.TrimPrefix(fmt.Sprintf("%T", q.Options()), "*v1.")
		seen = append(seen, fmt.Sprintf("%d %s/%s %s %s %s %s %v", q.Operation, q.Resource.Plural, q.Subresource, q.Kind().Kind,
			describe(obj), describe(old), options, q.Admitted))
		return nil
	}
	f := withHooks(t, nil, record)
	pods, deployments, maps := f.of(t, "pods"), f.of(t, "deployments"), f.of(t, "configmaps")
	for name, test := range map[string]struct {
		write func() error
		want  []string
	}{
		"create, update, delete": {func() error {
			f.create(t, "configmaps", configMap("c", "x"))
			_, err := maps.Update(t.Context(), "default", "c", changing(func(c *corev1.ConfigMap) { c.Data = nil }), registry.UpdateOptions{})
			if err == nil {
				_, err = maps.Delete(t.Context(), "default", "c", nil)
			}
			return err
		}, []string{
			"1 configmaps/ ConfigMap v1.ConfigMap - CreateOptions false", "2 configmaps/ ConfigMap v1.ConfigMap v1.ConfigMap UpdateOptions false",
			"3 configmaps/ ConfigMap - v1.ConfigMap DeleteOptions false",
		}},
		"scale": {func() error {
			f.create(t, "deployments", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}})
			_, err := scale.Update(t.Context(), deployments, "default", "d", func(s *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
				s = s.DeepCopy()
				s.Spec.Replicas = 3
				return s, nil
			}, registry.WriteOptions{})
			return err
		}, []string{"1 deployments/ Deployment v1.Deployment - CreateOptions false", "2 deployments/scale Scale v1.Scale v1.Scale UpdateOptions false"}},
		"binding, eviction": {func() error {
			f.create(t, "pods", newPod("p", ""))
			_, err := pod.Bind(t.Context(), pods, "default", "p", &corev1.Binding{Target: corev1.ObjectReference{Name: "n"}}, registry.WriteOptions{})
			if err == nil {
				_, err = pod.Evict(t.Context(), pods, "default", "p", &policyv1.Eviction{}, registry.WriteOptions{})
			}
			return err
		}, []string{
			"1 pods/ Pod v1.Pod - CreateOptions false",
			"1 pods/binding Binding v1.Binding - CreateOptions false", "2 pods/binding Pod v1.Pod v1.Pod UpdateOptions true",
			"1 pods/eviction Eviction v1.Eviction - CreateOptions false", "2 pods/status Pod v1.Pod v1.Pod UpdateOptions true",
			"3 pods/ Pod - v1.Pod DeleteOptions true",
		}},
	} {
		seen = nil
		if err := test.write(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(seen[:min(len(seen), len(test.want))], test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(seen, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// TestHooksSeeTheNamespaceOfWhatIsNotStored: it may stand in the URL only.
func TestHooksSeeTheNamespaceOfWhatIsNotStored(t *testing.T) {
	var seen []string
	f := withHooks(t, func(_ context.Context, q *registry.Request) error {
		if q.Object != nil && !q.Admitted {
			seen = append(seen, fmt.Sprintf("%T in %q", q.Object, q.Object.GetNamespace()))
		}
		return nil
	}, nil)
	pods := f.of(t, "pods")
	f.create(t, "pods", newPod("p", ""))
	seen = nil
	if _, err := pod.Bind(t.Context(), pods, "default", "p", &corev1.Binding{Target: corev1.ObjectReference{Name: "n"}}, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pod.Evict(t.Context(), pods, "default", "p", &policyv1.Eviction{}, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := []string{`*v1.Binding in "default"`, `*v1.Eviction in "default"`}; !slices.Equal(seen, want) {
		t.Errorf("hooks saw %q, want %q", seen, want)
	}
}

// TestReplacedScale changes the object behind a Scale.
func TestReplacedScale(t *testing.T) {
	f := withHooks(t, func(ctx context.Context, q *registry.Request) error {
		if q.Subresource != "scale" {
			return nil
		}
		obj, _, err := q.Shown()
		if err != nil {
			return err
		}
		changed := obj.(*autoscalingv1.Scale).DeepCopy()
		changed.Spec.Replicas++
		return q.Replace(ctx, changed)
	}, nil)
	f.create(t, "deployments", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}})
	got, err := scale.Update(t.Context(), f.of(t, "deployments"), "default", "d", func(s *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		s = s.DeepCopy()
		s.Spec.Replicas = 3
		return s, nil
	}, registry.WriteOptions{})
	if err != nil || got.Spec.Replicas != 4 {
		t.Fatalf("%v %v, want 4 replicas", got, err)
	}
}

// TestAdmissionChangesTheName lets a hook name a new object, and no other.
func TestAdmissionChangesTheName(t *testing.T) {
	rename := func(ctx context.Context, q *registry.Request) error {
		changed := q.Object.DeepCopyObject().(resource.Object)
		changed.SetName("other")
		return q.Replace(ctx, changed)
	}
	f := withHooks(t, rename, nil)
	maps := f.of(t, "configmaps")
	if created := f.create(t, "configmaps", configMap("c", "x")); created.Object.GetName() != "other" {
		t.Errorf("created %v", created.Object)
	}
	if _, err := maps.Get(t.Context(), "default", "other"); err != nil {
		t.Error(err)
	}
	_, err := maps.Update(t.Context(), "default", "d", func(resource.Object) (resource.Object, error) { return configMap("d", "x"), nil },
		registry.UpdateOptions{MayCreate: true, Unconditional: true})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("%v, want 400", err)
	}
}

// TestNewObjectsAreCompletedOnce: what depends on the whole of a new object is set once, and after the
// mutating hooks.
func TestNewObjectsAreCompletedOnce(t *testing.T) {
	f := withHooks(t, func(ctx context.Context, q *registry.Request) error {
		changed := q.Object.DeepCopyObject().(*corev1.ConfigMap)
		if q.Operation == registry.Create {
			changed.Labels = map[string]string{"by": "hook"}
		}
		return q.Replace(ctx, changed)
	}, nil)
	sent := configMap("c", "x")
	sent.SetLabels(map[string]string{"by": "client"})
	created := f.create(t, "configmaps", sent)
	if got := created.Object.GetAnnotations()["completed"]; got != "hook" {
		t.Errorf("completed with %q", got)
	}
	updated, err := f.of(t, "configmaps").Update(t.Context(), "default", "c", changing(func(c *corev1.ConfigMap) { c.Labels["by"] = "another" }), registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := updated.Object.GetAnnotations()["completed"]; got != "hook" {
		t.Errorf("after an update, completed with %q", got)
	}
}
