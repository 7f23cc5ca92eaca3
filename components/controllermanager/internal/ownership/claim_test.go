package ownership_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	claim := func(owner *appsv1.ReplicaSet, selector labels.Selector, seen *corev1.Pod) (*corev1.Pod, int) {
		t.Helper()
		mine, err := claimer.Claim(ctx, owner, selector, []*corev1.Pod{seen}, alive)
		if err != nil {
			t.Fatal(err)
		}
		now, err := pods.Get(ctx, "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return now, len(mine)
	}
	first := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default", UID: "1"}}
	second := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "second", Namespace: "default", UID: "2"}}

	annotate("before the adoption")
	adopted, n := claim(first, web, pod)
	if n != 1 || !metav1.IsControlledBy(adopted, first) {
		t.Fatalf("claimed %d, owners %v: want the pod adopted", n, adopted.OwnerReferences)
	}
	if now, n := claim(second, web, pod); n != 0 || len(now.OwnerReferences) != 1 {
		t.Errorf("a second controller claimed %d, owners %v", n, now.OwnerReferences)
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
	if now, n := claim(first, web, namesake); n != 0 || len(now.OwnerReferences) != 0 {
		t.Errorf("claimed %d, owners %v: a pod that replaced the one seen was adopted", n, now.OwnerReferences)
	}
}
