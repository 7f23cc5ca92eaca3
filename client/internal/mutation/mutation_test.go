package mutation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web", "a.b/c": "d"}, CreationTimestamp: metav1.NewTime(time.Unix(5, 0))},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}},
	}
}

func TestDifferenceNamesTheField(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod){
		"metadata.labels.app":                       func(p *corev1.Pod) { p.Labels["app"] = "x" },
		"metadata.labels[\"a.b/c\"]":                func(p *corev1.Pod) { delete(p.Labels, "a.b/c") },
		"metadata.labels.new":                       func(p *corev1.Pod) { p.Labels["new"] = "" },
		"metadata.annotations":                      func(p *corev1.Pod) { p.Annotations = map[string]string{} },
		"metadata.name":                             func(p *corev1.Pod) { p.Name = "x" },
		"metadata.creationTimestamp":                func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(6, 0)) },
		"spec.containers[0].image":                  func(p *corev1.Pod) { p.Spec.Containers[0].Image = "x" },
		"spec.containers":                           func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) },
		"spec.containers[0].resources.requests.cpu": func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") },
		"status.phase":                              func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"kind":                                      func(p *corev1.Pod) { p.Kind = "Pod" },
		"spec.securityContext":                      func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} },
	} {
		p := pod()
		change(p)
		if got, differ := Difference(pod(), p); !differ || got != want {
			t.Errorf("got %q, %v, want %q", got, differ, want)
		}
	}
	same := pod()
	cpu := same.Spec.Containers[0].Resources.Requests["cpu"]
	_ = cpu.String()
	if path, differ := Difference(pod(), same); differ {
		t.Errorf("equal objects differ in %q", path)
	}
}

func TestDifferenceOfUnstructured(t *testing.T) {
	a := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1), "names": []any{"a", "b"}}}}
	b := a.DeepCopy()
	if path, differ := Difference(a, b); differ {
		t.Errorf("equal objects differ in %q", path)
	}
	b.Object["spec"].(map[string]any)["names"].([]any)[1] = "c"
	if path, differ := Difference(a, b); !differ || path != "spec.names[1]" {
		t.Errorf("got %q, %v", path, differ)
	}
}

func TestDetectorReportsOnce(t *testing.T) {
	d := Detector[*corev1.Pod]{Copy: (*corev1.Pod).DeepCopy}
	first, second := pod(), pod()
	d.Track("a", first)
	d.Track("b", second)
	first.Labels["app"] = "changed"
	for _, want := range []int{1, 0} {
		got := 0
		d.CheckAll(func(key, path string) {
			got++
			if key != "a" || path != "metadata.labels.app" {
				t.Errorf("%s: %s", key, path)
			}
		})
		if got != want {
			t.Errorf("%d reports, want %d", got, want)
		}
	}
	d.Track("a", pod()) // a newer state
	first.Labels["app"] = "again"
	d.Forget("b")
	second.Name = "changed"
	d.CheckAll(func(key, path string) { t.Errorf("%s: %s is not in use any more", key, path) })
}
