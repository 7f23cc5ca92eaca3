package ownership_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/levelwiretest"
)

// An orphan is bound or reports its status while a controller, whose cache is behind,
// adopts it. A controller that did not get it would count one pod too few.
func TestClaimOfAnObjectThatChangesMeanwhile(t *testing.T) {
	ctx := t.Context()
	cl := levelwiretest.Start(t).Client(client.Options{})
	pods := client.For[*corev1.Pod](cl).Namespace("default")
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	annotate := func(what string) {
		t.Helper()
		patch := []byte(`{"metadata":{"annotations":{"changed":"` + what + `"}}}`)
		if _, err := pods.Patch(ctx, "p", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claimer := ownership.Claimer[*corev1.Pod]{API: client.For[*corev1.Pod](cl), Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet")}
	alive := func(context.Context) (bool, error) { return true, nil }
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	try := func(owner *appsv1.ReplicaSet, selector labels.Selector, seen *corev1.Pod) (*corev1.Pod, int, error) {
		t.Helper()
		mine, failed := claimer.Claim(ctx, owner, selector, []*corev1.Pod{seen}, alive)
		now, err := pods.Get(ctx, "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return now, len(mine), failed
	}
	claim := func(owner *appsv1.ReplicaSet, selector labels.Selector, seen *corev1.Pod) (*corev1.Pod, int) {
		t.Helper()
		now, n, err := try(owner, selector, seen)
		if err != nil {
			t.Fatal(err)
		}
		return now, n
	}
	first := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default", UID: "1"}}
	second := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "second", Namespace: "default", UID: "2"}}

	annotate("before the adoption")
	adopted, n := claim(first, web, pod)
	if n != 1 || !metav1.IsControlledBy(adopted, first) {
		t.Fatalf("claimed %d, owners %v: want the pod adopted", n, adopted.OwnerReferences)
	}
	if now, n, err := try(second, web, pod); n != 0 || len(now.OwnerReferences) != 1 || !apierrors.IsConflict(err) {
		t.Errorf("a second controller claimed %d, owners %v, error %v: want a Conflict, for its cache is behind", n, now.OwnerReferences, err)
	}
	annotate("before the release")
	released, n := claim(first, labels.SelectorFromSet(labels.Set{"app": "other"}), adopted)
	if n != 0 || len(released.OwnerReferences) != 0 {
		t.Errorf("claimed %d, owners %v: want the pod released", n, released.OwnerReferences)
	}
	if released.Annotations["changed"] != "before the release" {
		t.Errorf("annotations %v: the release overwrote a change", released.Annotations)
	}

	namesake := pod.DeepCopy()
	namesake.UID = "3"
	if now, n, err := try(first, web, namesake); n != 0 || len(now.OwnerReferences) != 0 || !apierrors.IsConflict(err) {
		t.Errorf("claimed %d, owners %v, error %v: want a Conflict and no adoption of a pod that replaced the one seen", n, now.OwnerReferences, err)
	}
	namesake.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(first, claimer.Kind)}
	if _, n, err := try(first, labels.SelectorFromSet(labels.Set{"app": "other"}), namesake); n != 0 || !apierrors.IsConflict(err) {
		t.Errorf("claimed %d, error %v: want a Conflict, for the pod that was to be released is another one", n, err)
	}
}

// An owner that has been deleted adopts nothing. It must not act either as if there were
// nothing to adopt: it would make a pod too many from a cache that does not show its end yet.
func TestClaimIsAllOrNothing(t *testing.T) {
	cl := levelwiretest.Start(t).Client(client.Options{})
	claimer := ownership.Claimer[*corev1.Pod]{API: client.For[*corev1.Pod](cl), Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet")}
	owner := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}}
	labelled := metav1.ObjectMeta{Name: "orphan", Namespace: "default", UID: "2", Labels: map[string]string{"app": "web"}}
	own := labelled
	own.Name, own.UID = "own", "3"
	own.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, claimer.Kind)}
	candidates := []*corev1.Pod{{ObjectMeta: own}, {ObjectMeta: labelled}} // the server has neither

	unreachable := errors.New("the server cannot be asked")
	for name, c := range map[string]struct {
		alive    bool
		asked    error
		mine     int
		conflict bool
	}{
		"the owner has been deleted":           {alive: false, conflict: true},
		"the server cannot say whether it has": {asked: unreachable},
		"the orphan has been deleted already":  {alive: true, mine: 1},
	} {
		mine, err := claimer.Claim(t.Context(), owner, labels.SelectorFromSet(own.Labels), candidates, func(context.Context) (bool, error) { return c.alive, c.asked })
		if len(mine) != c.mine || apierrors.IsConflict(err) != c.conflict || c.asked != nil && !errors.Is(err, c.asked) || (err == nil) != (c.mine > 0) {
			t.Errorf("%s: %d pods, error %v", name, len(mine), err)
		}
	}
}
