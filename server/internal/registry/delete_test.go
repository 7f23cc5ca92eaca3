package registry_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/storage"
)

const errModified = "the object has been modified; please apply your changes to the latest version and try again"

func decodeScale(patched []byte) (*autoscalingv1.Scale, error) {
	scale := &autoscalingv1.Scale{}
	return scale, json.Unmarshal(patched, scale)
}

func constant(scale *autoscalingv1.Scale) func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	return func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) { return scale, nil }
}

// story tells events in words.
func story(t *testing.T, events []storage.Event) string {
	t.Helper()
	var words []string
	for _, e := range events {
		if e.Deleted {
			words = append(words, "deleted")
			continue
		}
		var obj metav1.PartialObjectMetadata
		if err := json.Unmarshal(e.Value, &obj); err != nil {
			t.Fatal(err)
		}
		word := "written"
		switch grace := obj.DeletionGracePeriodSeconds; {
		case grace != nil:
			word = fmt.Sprintf("marked %d", *grace)
		case obj.DeletionTimestamp != nil:
			word = "marked"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func TestDeletePodsIsSeenTwice(t *testing.T) {
	seconds := func(n int64) *metav1.DeleteOptions { return &metav1.DeleteOptions{GracePeriodSeconds: &n} }
	tests := []struct {
		name, node string
		requests   []*metav1.DeleteOptions
		want       string
	}{
		{"unbound", "", []*metav1.DeleteOptions{nil}, "marked 0, deleted"},
		{"unbound with a grace period", "", []*metav1.DeleteOptions{seconds(5)}, "marked 0, deleted"},
		{"forced", "n", []*metav1.DeleteOptions{seconds(0)}, "marked 0, deleted"},
		{"bound", "n", []*metav1.DeleteOptions{nil}, "marked 30"},
		{"shortened, then confirmed", "n", []*metav1.DeleteOptions{nil, seconds(10), seconds(0)}, "marked 30, marked 10, marked 0, deleted"},
		{"a negative grace is a second", "n", []*metav1.DeleteOptions{seconds(-3)}, "marked 1"},
		{"shortened to a negative grace", "n", []*metav1.DeleteOptions{nil, seconds(-3)}, "marked 30, marked 1"},
		{"negative, and again", "n", []*metav1.DeleteOptions{seconds(-3), seconds(-3)}, "marked 1"},
		{"shortened to what has passed", "n", []*metav1.DeleteOptions{nil, nil, nil, seconds(2)}, "marked 30, marked 1"},
		{"never lengthened", "n", []*metav1.DeleteOptions{seconds(10), seconds(20), nil}, "marked 10"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			created := f.create(t, "pods", newPod("p", test.node))
			var last *registry.Result
			for _, opts := range test.requests {
				var err error
				if last, err = f.of(t, "pods").Delete(t.Context(), "default", "p", opts); err != nil {
					t.Fatal(err)
				}
				f.clock.Advance(time.Second)
			}
			got := story(t, f.events(t, "/registry/pods/", created.Revision))
			if got != test.want {
				t.Errorf("events: %s, want %s", got, test.want)
			}
			if gone := strings.HasSuffix(test.want, "deleted"); last.Deleted != gone || last.Status != nil {
				t.Errorf("the answer says deleted %v, status %v", last.Deleted, last.Status)
			}
			if last.Object.GetDeletionTimestamp() == nil {
				t.Error("the answer does not show the deletion")
			}
		})
	}
}

// TestEndlessGraceDoesNotOverflow: a pod that is given for ever is marked in
// the future, not in the past.
func TestEndlessGraceDoesNotOverflow(t *testing.T) {
	f := newFixture(t)
	f.create(t, "pods", newPod("p", "n"))
	grace := int64(math.MaxInt64)
	result, err := f.of(t, "pods").Delete(t.Context(), "default", "p", &metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil {
		t.Fatal(err)
	}
	if at := result.Object.GetDeletionTimestamp(); at.Time.Before(f.clock.Now().AddDate(90, 0, 0)) {
		t.Errorf("the pod's time ends at %v", at)
	}
}

func TestShortenedGraceCountsFromTheFirstRequest(t *testing.T) {
	f := newFixture(t)
	f.create(t, "pods", newPod("p", "n"))
	begin := f.clock.Now()
	for _, grace := range []int64{30, 10} {
		result, err := f.of(t, "pods").Delete(t.Context(), "default", "p", &metav1.DeleteOptions{GracePeriodSeconds: &grace})
		if err != nil {
			t.Fatal(err)
		}
		if want := begin.Add(time.Duration(grace) * time.Second); !result.Object.GetDeletionTimestamp().Time.Equal(want) {
			t.Errorf("grace %d: deletion at %v, want %v", grace, result.Object.GetDeletionTimestamp(), want)
		}
		f.clock.Advance(3 * time.Second)
	}
}

// TestShortenedGraceEndsNotInThePast: a grace period that is over by the time it is asked
// for ends now, and leaves the removal to the kubelet.
func TestShortenedGraceEndsNotInThePast(t *testing.T) {
	for grace, want := range map[int64]int64{5: 1, -1: 1, 1: 1, 0: 0} {
		f := newFixture(t)
		f.create(t, "pods", newPod("p", "n"))
		if _, err := f.of(t, "pods").Delete(t.Context(), "default", "p", nil); err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(20 * time.Second)
		result, err := f.of(t, "pods").Delete(t.Context(), "default", "p", &metav1.DeleteOptions{GracePeriodSeconds: &grace})
		if err != nil {
			t.Fatal(err)
		}
		obj := result.Object
		if at := obj.GetDeletionTimestamp(); !at.Time.Equal(f.clock.Now()) || *obj.GetDeletionGracePeriodSeconds() != want || result.Deleted != (want == 0) {
			t.Errorf("grace %d: %d s until %v, deleted %v", grace, *obj.GetDeletionGracePeriodSeconds(), at, result.Deleted)
		}
	}
}

func TestDeleteAnswersWithStatus(t *testing.T) {
	f := newFixture(t)
	created := f.create(t, "configmaps", configMap("a", ""))
	result, err := f.of(t, "configmaps").Delete(t.Context(), "default", "a", nil)
	if err != nil || !result.Deleted || result.Status == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	d := result.Status.Details
	if result.Status.Status != metav1.StatusSuccess || d.Name != "a" || d.Kind != "configmaps" || d.UID != created.Object.GetUID() {
		t.Errorf("status %+v, details %+v", result.Status, d)
	}
	_, err = f.of(t, "configmaps").Delete(t.Context(), "default", "a", nil)
	wantStatus(t, "second delete", err, 404, metav1.StatusReasonNotFound, `configmaps "a" not found`)
}

func TestDeletePreconditions(t *testing.T) {
	f := newFixture(t)
	created := f.create(t, "configmaps", configMap("a", ""))
	uid, version := apitypes.UID("other"), "1"
	for _, p := range []metav1.Preconditions{{UID: &uid}, {ResourceVersion: &version}} {
		_, err := f.of(t, "configmaps").Delete(t.Context(), "default", "a", &metav1.DeleteOptions{Preconditions: &p})
		wantStatus(t, p.String(), err, 409, metav1.StatusReasonConflict, "in the precondition")
	}
	uid, version = created.Object.GetUID(), created.Object.GetResourceVersion()
	if _, err := f.of(t, "configmaps").Delete(t.Context(), "default", "a", &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	}); err != nil {
		t.Errorf("delete of what is meant: %v", err)
	}
}

func TestDeleteRefusesOptions(t *testing.T) {
	f := newFixture(t)
	f.create(t, "configmaps", configMap("a", ""))
	policy, orphan := metav1.DeletionPropagation("Sideways"), true
	for _, opts := range []*metav1.DeleteOptions{
		{PropagationPolicy: &policy}, {DryRun: []string{"Some"}},
		{PropagationPolicy: new(metav1.DeletePropagationOrphan), OrphanDependents: &orphan},
	} {
		_, err := f.of(t, "configmaps").Delete(t.Context(), "default", "a", opts)
		wantStatus(t, opts.String(), err, 422, metav1.StatusReasonInvalid, "DeleteOptions")
	}
}

// TestVersionOfADeletion: what a delete answers of an object that is gone has the version of its deletion, as the watch event has.
func TestVersionOfADeletion(t *testing.T) {
	f := newFixture(t)
	created := f.create(t, "pods", newPod("p", ""))
	gone, err := f.of(t, "pods").Delete(t.Context(), "default", "p", nil)
	if err != nil || !gone.Deleted {
		t.Fatalf("%+v, %v", gone, err)
	}
	events := f.events(t, "/registry/pods/", created.Revision)
	if last := events[len(events)-1]; gone.Object.GetResourceVersion() != fmt.Sprint(last.Revision) {
		t.Errorf("the answer shows version %s, the event %d", gone.Object.GetResourceVersion(), last.Revision)
	}
}

func TestFinalizersHoldAnObject(t *testing.T) {
	f := newFixture(t)
	obj := configMap("a", "")
	obj.Finalizers = []string{"example.com/wait"}
	created := f.create(t, "configmaps", obj)
	r := f.of(t, "configmaps")
	marked, err := r.Delete(t.Context(), "default", "a", nil)
	if err != nil || marked.Deleted || marked.Status != nil || marked.Object.GetDeletionTimestamp() == nil {
		t.Fatalf("%+v, %v", marked, err)
	}
	again, err := r.Delete(t.Context(), "default", "a", nil)
	if err != nil || again.Revision != marked.Revision {
		t.Errorf("a second delete wrote: %+v, %v", again, err)
	}
	_, err = r.Update(t.Context(), "default", "a", changing(func(c *corev1.ConfigMap) {
		c.Finalizers = append(c.Finalizers, "example.com/more")
	}), registry.UpdateOptions{})
	wantStatus(t, "a new finalizer", err, 422, metav1.StatusReasonInvalid, "no new finalizers can be added if the object is being deleted")
	last, err := r.Update(t.Context(), "default", "a", changing(func(c *corev1.ConfigMap) { c.Finalizers = nil }), registry.UpdateOptions{})
	if err != nil || !last.Deleted {
		t.Fatalf("%+v, %v", last, err)
	}
	if got, want := last.Object.GetResourceVersion(), marked.Object.GetResourceVersion(); got != want || last.Revision <= marked.Revision {
		t.Errorf("the update that lets the object go shows version %s, not the one that it replaces, %s; its revision is %d", got, want, last.Revision)
	}
	if got := story(t, f.events(t, "/registry/configmaps/", created.Revision)); got != "marked 0, deleted" {
		t.Errorf("events: %s", got)
	}
}

func TestPropagationPolicyBecomesAFinalizer(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		name string
		opts metav1.DeleteOptions
		had  []string
		want string
	}{
		{"background", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, nil, "gone"},
		{"orphan", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}, nil, "[orphan]"},
		{"foreground", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, nil, "[foregroundDeletion]"},
		{"foreground after orphan", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, []string{"orphan", "example.com/x"}, "[example.com/x foregroundDeletion]"},
		{"orphanDependents", metav1.DeleteOptions{OrphanDependents: &yes}, nil, "[orphan]"},
		{"not orphanDependents", metav1.DeleteOptions{OrphanDependents: &no}, []string{"orphan"}, "gone"},
		{"what the object says", metav1.DeleteOptions{}, []string{"orphan"}, "[orphan]"},
	}
	for _, test := range tests {
		f := newFixture(t)
		obj := configMap("a", "")
		obj.Finalizers = test.had
		f.create(t, "configmaps", obj)
		result, err := f.of(t, "configmaps").Delete(t.Context(), "default", "a", &test.opts)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got := fmt.Sprint(result.Object.GetFinalizers())
		if result.Deleted {
			got = "gone"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestNamespaceLifecycle(t *testing.T) {
	f := newFixture(t)
	namespaces := f.of(t, "namespaces")
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		_, err := namespaces.Delete(t.Context(), "", name, nil)
		wantStatus(t, name, err, 403, metav1.StatusReasonForbidden, "this namespace may not be deleted")
	}
	created := f.create(t, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}})
	marked, err := namespaces.Delete(t.Context(), "", "work", nil)
	if err != nil || marked.Deleted || marked.Object.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		t.Fatalf("%+v, %v", marked, err)
	}
	if marked.Object.GetDeletionTimestamp() == nil || marked.Object.GetDeletionGracePeriodSeconds() != nil {
		t.Errorf("the namespace was marked with %v and %v seconds", marked.Object.GetDeletionTimestamp(), marked.Object.GetDeletionGracePeriodSeconds())
	}
	_, err = f.of(t, "configmaps").Create(t.Context(), "work", configMap("a", ""), registry.WriteOptions{})
	wantStatus(t, "create in a terminating namespace", err, 403, metav1.StatusReasonForbidden, "because it is being terminated")
	empty := func(current resource.Object) (resource.Object, error) {
		ns := current.DeepCopyObject().(*corev1.Namespace)
		ns.Spec.Finalizers = nil
		return ns, nil
	}
	if kept, err := namespaces.Update(t.Context(), "", "work", empty, registry.UpdateOptions{}); err != nil || kept.Deleted {
		t.Errorf("a plain update took the finalizer away: %+v, %v", kept, err)
	}
	last, err := namespaces.UpdateSubresource(t.Context(), "", "work", "finalize", empty, registry.UpdateOptions{Unconditional: true})
	if err != nil || !last.Deleted {
		t.Errorf("finalize: %+v, %v", last, err)
	}
	if got := story(t, f.events(t, "/registry/namespaces/", created.Revision)); !strings.HasSuffix(got, "deleted") {
		t.Errorf("events: %s", got)
	}
}

// TestDeleteRefusesSystemPriorityClasses: every cluster has them, so that the pods that it
// cannot do without can name them.
func TestDeleteRefusesSystemPriorityClasses(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	classes, ok := f.Lookup("scheduling.k8s.io", "v1", "priorityclasses")
	if !ok {
		t.Fatal("PriorityClasses are not served")
	}
	for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
		for _, opts := range []*metav1.DeleteOptions{nil, {DryRun: []string{metav1.DryRunAll}}} {
			_, err := classes.Delete(t.Context(), "", name, opts)
			wantStatus(t, name, err, 403, metav1.StatusReasonForbidden, `priorityclasses.scheduling.k8s.io "`+name+`" is forbidden: this is a system priority class and cannot be deleted`)
		}
	}
	own := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Value: 1}
	if _, err := classes.Create(t.Context(), "", own, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if result, err := classes.Delete(t.Context(), "", "own", nil); err != nil || !result.Deleted {
		t.Errorf("a class of a user's: %+v %v", result, err)
	}
}
