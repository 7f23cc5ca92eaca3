package builtin_test

import (
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestAmountsAreRounded: amounts are stored in thousandths, smaller ones rounded up.
func TestAmountsAreRounded(t *testing.T) {
	small := regexp.MustCompile(`100u|1\.0001|0\.00`)
	for kind, manifest := range map[string]string{
		"Pod": `spec: {overhead: {cpu: 100u}, containers: [{name: a, image: b, resources: {requests: {cpu: 100u}, limits: {cpu: "1.0001"}}}],
			initContainers: [{name: i, image: b, resources: {limits: {cpu: 100u}}}],
			volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "0.0001"}}}}}}]}`,
		"ReplicationController": `spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {resources: {limits: {cpu: 100u}}, containers: [{name: a, image: b, resources: {limits: {cpu: 100u}}}]}}}`,
		"PersistentVolume":      `spec: {capacity: {storage: "1.0001"}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}`,
		"PersistentVolumeClaim": `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "1.0001"}}}`,
		"Node":                  `status: {capacity: {cpu: 100u}}`,
		"ResourceQuota":         `spec: {hard: {cpu: 100u}}`,
		"LimitRange":            `spec: {limits: [{type: Container, max: {cpu: "1.0001"}, min: {cpu: 100u}, defaultRequest: {cpu: 100u}}]}`,
	} {
		got := created(t, builtin.Table().ByKind(schema.GroupVersionKind{Version: "v1", Kind: kind}), []byte("apiVersion: v1\nkind: "+kind+"\nmetadata: {name: example}\n"+manifest))
		if found := small.FindAll(got, -1); found != nil {
			t.Errorf("%s: %q are in\n%s", kind, found, got)
		}
	}
	sets := `spec: {serviceName: s, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}},
			volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1.0001Ki}}}}]}`
	got := created(t, builtin.Table().ByKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}), []byte("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: example}\n"+sets))
	if !regexp.MustCompile(`storage: 1024103m`).Match(got) {
		t.Errorf("a claim of a StatefulSet is not rounded:\n%s", got)
	}
}

// TestUnroundedAmountsStay: an object whose amounts were stored as they are can still be changed.
func TestUnroundedAmountsStay(t *testing.T) {
	r := builtin.Table().ByKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	old := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
	r.Strategy.Default(old)
	old.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100u")}
	pod := old.DeepCopy()
	pod.Labels = map[string]string{"a": "b"}
	r.Strategy.Default(pod)
	if got := complaints(r.Strategy.ValidateUpdate(pod, old)); len(got) > 0 {
		t.Errorf("a label is refused: %q", got)
	}
	pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2m")
	if got := complaints(r.Strategy.ValidateUpdate(pod, old)); !slices.Equal(got, []string{"Forbidden spec"}) {
		t.Errorf("another amount: %q", got)
	}
}
