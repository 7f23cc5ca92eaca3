package controller_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func awaitClaims(c *cluster, want string) {
	c.t.Helper()
	awaitEach(c, in[*corev1.PersistentVolumeClaim](c), metav1.ListOptions{}, "the claims "+want, func(all map[string]*corev1.PersistentVolumeClaim) bool {
		return strings.Join(slices.Sorted(maps.Keys(all)), " ") == want
	})
}

// Claims go with their pod or with their set, as the set's policy says, and one
// that changes its mind in time keeps them.
func TestClaimsGoAsTheirPolicySays(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	sets := in[*appsv1.StatefulSet](c)
	const keep, drop = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	for _, tt := range []struct {
		name            string
		deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType
		smaller, gone   string
	}{
		{"a", drop, drop, "data-a-0", ""},
		{"b", keep, drop, "data-b-0", "data-b-0"},
		{"c", drop, keep, "data-b-0 data-c-0 data-c-1", "data-b-0"},
	} {
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: tt.name},
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(int32(2)), Selector: selectWeb(), Template: podTemplate("db:1"),
				PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: tt.deleted, WhenScaled: tt.scaled},
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
					ObjectMeta: metav1.ObjectMeta{Name: "data"},
					Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storageOf("1Gi")},
				}},
			},
		}
		create(c, sets, set)
		ready := func(n int32) func(*appsv1.StatefulSet) bool {
			return func(s *appsv1.StatefulSet) bool {
				return s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == n && s.Status.Replicas == n
			}
		}
		await(c, sets, tt.name, "two pods", ready(2))
		change(c, sets, tt.name, func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 1 })
		await(c, sets, tt.name, "one pod", ready(1))
		awaitClaims(c, tt.smaller)
		remove(c, sets, tt.name, metav1.DeleteOptions{})
		awaitClaims(c, tt.gone)
	}
}
