package controller_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

func newConfig(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
}

func ownedBy(owner *corev1.ConfigMap) metav1.OwnerReference {
	blocks := true
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocks}
}

func awaitGone(c *cluster, name string) {
	c.t.Helper()
	awaitEach(c, in[*corev1.ConfigMap](c), metav1.ListOptions{}, name+" gone", func(all map[string]*corev1.ConfigMap) bool { return all[name] == nil })
}

// awaitCollection returns when the collector has looked at what was there
// before: keys are taken in order, and the marker's is the last.
func awaitCollection(c *cluster) {
	c.t.Helper()
	create(c, in[*corev1.ConfigMap](c), newConfig("marker", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "missing", UID: "none"}))
	awaitGone(c, "marker")
}

func TestForegroundDeletionWaitsForAllBelow(t *testing.T) {
	c := newCluster(t, 0)
	configs := in[*corev1.ConfigMap](c)
	top := create(c, configs, newConfig("top"))
	middle := create(c, configs, newConfig("middle", ownedBy(top)))
	bottom := newConfig("bottom", ownedBy(middle))
	bottom.Finalizers = []string{"example.com/hold"}
	create(c, configs, bottom)
	c.startManager()
	foreground := metav1.DeletePropagationForeground
	remove(c, configs, "top", metav1.DeleteOptions{PropagationPolicy: &foreground})
	await(c, configs, "bottom", "being deleted", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp != nil })
	awaitCollection(c)
	for _, name := range []string{"top", "middle"} {
		await(c, configs, name, "waiting for what it owns", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp != nil })
	}
	change(c, configs, "bottom", func(m *corev1.ConfigMap) { m.Finalizers = nil })
	for _, name := range []string{"bottom", "middle", "top"} {
		awaitGone(c, name)
	}
}

// TestOwnersInACircle: objects that own each other, and wait for each other, go when one of them is deleted in the
// foreground, and do not hold up their namespace.
func TestOwnersInACircle(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	namespaces, foreground := client.For[*corev1.Namespace](c.client), metav1.DeletePropagationForeground
	for name, circle := range map[string][]string{"two": {"a", "b"}, "three": {"a", "b", "c"}} {
		create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		configs := client.For[*corev1.ConfigMap](c.client).Namespace(name)
		first := create(c, configs, newConfig(circle[0]))
		last := first
		for _, next := range circle[1:] {
			last = create(c, configs, newConfig(next, ownedBy(last)))
		}
		change(c, configs, first.Name, func(m *corev1.ConfigMap) { m.OwnerReferences = []metav1.OwnerReference{ownedBy(last)} })
		remove(c, configs, first.Name, metav1.DeleteOptions{PropagationPolicy: &foreground})
		awaitEach(c, configs, metav1.ListOptions{}, "the circle of "+name+" gone", func(all map[string]*corev1.ConfigMap) bool {
			return all["a"] == nil && all["b"] == nil && all["c"] == nil
		})
		remove(c, namespaces, name, metav1.DeleteOptions{})
		awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace gone", func(all map[string]*corev1.Namespace) bool { return all[name] == nil })
	}
}

func TestOrphansStay(t *testing.T) {
	c := newCluster(t, 2)
	c.startManager()
	sets, podAPI := in[*appsv1.ReplicaSet](c), in[*corev1.Pod](c)
	create(c, sets, newSet("web", 3))
	await(c, sets, "web", "ready", ready(3))
	orphan := metav1.DeletePropagationOrphan
	remove(c, sets, "web", metav1.DeleteOptions{PropagationPolicy: &orphan})
	awaitEach(c, sets, metav1.ListOptions{}, "the set gone", func(all map[string]*appsv1.ReplicaSet) bool { return len(all) == 0 })
	awaitCollection(c)
	list, err := podAPI.List(c.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Fatalf("%d pods, %v; want 3", len(list.Items), err)
	}
	for _, pod := range list.Items {
		if len(pod.OwnerReferences) != 0 || pod.DeletionTimestamp != nil {
			t.Errorf("%s: owners %v, deleted %v", pod.Name, pod.OwnerReferences, pod.DeletionTimestamp)
		}
	}
}

// TestOwnersThatCannotBe are references of which no client has ever seen the
// owner.
func TestOwnersThatCannotBe(t *testing.T) {
	c := newCluster(t, 0)
	configs := in[*corev1.ConfigMap](c)
	elsewhere := create(c, client.For[*corev1.ConfigMap](c.client).Namespace("kube-public"), newConfig("elsewhere"))
	here := create(c, configs, newConfig("here"))
	ref := func(kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: uid}
	}
	goes := map[string][]metav1.OwnerReference{
		"another-namespace": {ref("ConfigMap", "elsewhere", elsewhere.UID)},
		"never-was":         {ref("ConfigMap", "missing", "1")},
		"another-uid":       {ref("ConfigMap", "here", "2")},
	}
	stays := map[string][]metav1.OwnerReference{
		"kind-not-served": {{APIVersion: "example.com/v1", Kind: "Widget", Name: "w", UID: "3"}},
		"one-of-two":      {ref("ConfigMap", "missing", "4"), ref("ConfigMap", "here", here.UID)},
	}
	for _, group := range []map[string][]metav1.OwnerReference{goes, stays} {
		for name, owners := range group {
			create(c, configs, newConfig(name, owners...))
		}
	}
	c.startManager()
	for name := range goes {
		awaitGone(c, name)
	}
	await(c, configs, "one-of-two", "rid of the owner that is not there", func(m *corev1.ConfigMap) bool {
		return len(m.OwnerReferences) == 1 && m.OwnerReferences[0].UID == here.UID
	})
	awaitCollection(c)
	for name := range stays {
		await(c, configs, name, "left alone", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp == nil })
	}
}
