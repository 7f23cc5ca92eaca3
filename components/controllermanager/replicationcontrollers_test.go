package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newReplicationController(name string, replicas int32) *corev1.ReplicationController {
	template := podTemplate("web:1")
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ReplicationControllerSpec{Replicas: &replicas, Template: &template},
	}
}

func replicated(n int32) func(*corev1.ReplicationController) bool {
	return func(rc *corev1.ReplicationController) bool {
		s := rc.Status
		return s.ObservedGeneration == rc.Generation && s.Replicas == n && s.ReadyReplicas == n && s.AvailableReplicas == n && s.FullyLabeledReplicas == n
	}
}

// TestReplicationControllerKeepsItsPods: one adopts, releases, replaces, scales and deletes pods as a ReplicaSet does.
func TestReplicationControllerKeepsItsPods(t *testing.T) {
	c := newCluster(t, 2)
	controllers, pods := in[*corev1.ReplicationController](c), in[*corev1.Pod](c)
	createPod(c, "orphan", nil)
	rc := create(c, controllers, newReplicationController("web", 2))
	c.startManager() // when both exist: see TestReplicaSetKeepsItsPods
	await(c, controllers, "web", "2 ready", replicated(2))
	owned := await(c, pods, "orphan", "adopted", func(p *corev1.Pod) bool { return metav1.GetControllerOf(p) != nil })
	if owner := metav1.GetControllerOf(owned); owner.Kind != "ReplicationController" || owner.APIVersion != "v1" || owner.UID != rc.UID {
		t.Errorf("the owner is %+v", owner)
	}

	change(c, pods, "orphan", func(p *corev1.Pod) { p.Labels["app"] = "debug" })
	await(c, pods, "orphan", "released", func(p *corev1.Pod) bool { return metav1.GetControllerOf(p) == nil })
	awaitEach(c, pods, metav1.ListOptions{LabelSelector: "app=web"}, "a successor", func(all map[string]*corev1.Pod) bool { return len(all) == 2 })
	change(c, controllers, "web", func(rc *corev1.ReplicationController) { *rc.Spec.Replicas = 3 })
	await(c, controllers, "web", "3 ready", replicated(3))
	change(c, controllers, "web", func(rc *corev1.ReplicationController) { *rc.Spec.Replicas = 1 })
	await(c, controllers, "web", "1 ready", replicated(1))

	background := metav1.DeletePropagationBackground // without it, they are orphans of a ReplicationController
	remove(c, controllers, "web", metav1.DeleteOptions{PropagationPolicy: &background})
	awaitEach(c, pods, metav1.ListOptions{}, "only the pod that was released", func(all map[string]*corev1.Pod) bool {
		return len(all) == 1 && all["orphan"] != nil
	})
}

// TestReplicationControllerSaysThatItFails: one whose pods a quota refuses has the condition ReplicaFailure until it asks for
// no more than there may be.
func TestReplicationControllerSaysThatItFails(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	controllers, quotas := in[*corev1.ReplicationController](c), in[*corev1.ResourceQuota](c)
	create(c, quotas, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")},
	}})
	await(c, quotas, "two", "counted", func(q *corev1.ResourceQuota) bool { return len(q.Status.Used) > 0 })
	create(c, controllers, newReplicationController("web", 3))
	failing := await(c, controllers, "web", "the failure", func(rc *corev1.ReplicationController) bool { return len(rc.Status.Conditions) > 0 })
	if failure := failing.Status.Conditions[0]; failure.Type != corev1.ReplicationControllerReplicaFailure || failure.Status != corev1.ConditionTrue ||
		failure.Reason != "FailedCreate" || failure.Message == "" || failure.LastTransitionTime.IsZero() {
		t.Errorf("%+v", failure)
	}
	change(c, controllers, "web", func(rc *corev1.ReplicationController) { *rc.Spec.Replicas = 2 })
	await(c, controllers, "web", "no failure", func(rc *corev1.ReplicationController) bool {
		return replicated(2)(rc) && len(rc.Status.Conditions) == 0
	})
}
