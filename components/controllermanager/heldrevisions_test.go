package controller_test

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// newRevision returns the revision of an image's template, older than those that the controller has recorded.
func newRevision(c *cluster, name, image string, set *appsv1.StatefulSet) *appsv1.ControllerRevision {
	c.t.Helper()
	text, err := json.Marshal(podTemplate(image))
	if err != nil {
		c.t.Fatal(err)
	}
	var template map[string]any
	if err := json.Unmarshal(text, &template); err != nil {
		c.t.Fatal(err)
	}
	template["$patch"] = "replace"
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		c.t.Fatal(err)
	}
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: data}}
	if set != nil {
		revision.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	}
	return revision
}

// createOldRevision is what another leader has recorded of a StatefulSet.
func createOldRevision(c *cluster, set string) {
	c.t.Helper()
	owner, err := in[*appsv1.StatefulSet](c).Get(c.ctx, set, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	create(c, in[*appsv1.ControllerRevision](c), newRevision(c, "web-old", "web:0", owner))
}

// merge patches an object.
func merge[T client.Object](c *cluster, api client.Resource[T], name, patch string, subresources ...string) {
	c.t.Helper()
	if _, err := api.Patch(c.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...); err != nil {
		c.t.Fatal(err)
	}
}

func setObserved(s *appsv1.StatefulSet) bool {
	return s.Status.ObservedGeneration == s.Generation && s.Status.Replicas == 1
}

// TestRevisionsWithAWatchBehind: without a revision, a pod below the partition would get the template that its set is updated
// to, and without a pod, the template that it was made of would be deleted.
func TestRevisionsWithAWatchBehind(t *testing.T) {
	for name, step := range map[string]heldStep{
		"current one of a StatefulSet": {
			held: "controllerrevisions",
			before: func(c *cluster) {
				sets, set := in[*appsv1.StatefulSet](c), newStatefulSet("web", 1)
				set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
					Type:          appsv1.RollingUpdateStatefulSetStrategyType,
					RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))},
				}
				create(c, sets, set)
				await(c, sets, "web", "one pod", setObserved)
				change(c, sets, "web", func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:2" })
				await(c, sets, "web", "another template", func(s *appsv1.StatefulSet) bool {
					return setObserved(s) && s.Status.UpdateRevision != s.Status.CurrentRevision
				})
				c.statefulSetSeen()
			},
			first: func(c *cluster) { createOldRevision(c, "web") },
			second: func(c *cluster) {
				merge(c, in[*appsv1.StatefulSet](c), "web", `{"status":{"currentRevision":"web-old"}}`, "status")
				c.removePod(anyPod)
			},
			end: func(c *cluster) {
				awaitEach(c, in[*corev1.Pod](c), metav1.ListOptions{}, "the pod again", func(all map[string]*corev1.Pod) bool { return len(all) == 1 })
			},
			done: func(c *cluster) func() []string {
				return happened(c, in[*corev1.Pod](c), newPod("last"), func(ev client.WatchEvent[*corev1.Pod]) bool {
					return added(ev) && ev.Object.Spec.Containers[0].Image != "web:0"
				})
			},
		},
		"old one that a pod uses": {
			held: "pods",
			before: func(c *cluster) {
				sets, set := in[*appsv1.StatefulSet](c), newStatefulSet("web", 1)
				set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
				create(c, sets, set)
				await(c, sets, "web", "one pod", setObserved)
				createOldRevision(c, "web")
				c.statefulSetSeen()
			},
			first: func(c *cluster) {
				merge(c, in[*corev1.Pod](c), "web-0", `{"metadata":{"labels":{"controller-revision-hash":"web-old"}}}`)
			},
			second: func(c *cluster) {
				change(c, in[*appsv1.StatefulSet](c), "web", func(s *appsv1.StatefulSet) { s.Spec.RevisionHistoryLimit = new(int32(0)) })
			},
			end: func(c *cluster) { await(c, in[*appsv1.StatefulSet](c), "web", "seen", setObserved) },
			done: func(c *cluster) func() []string {
				return happened(c, in[*appsv1.ControllerRevision](c), newRevision(c, "last", "last:1", nil), deleted)
			},
		},
	} {
		t.Run(name, step.run)
	}
}
