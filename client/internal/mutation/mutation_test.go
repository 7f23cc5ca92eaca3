package mutation

import (
	"slices"
	"testing"
	"testing/synctest"
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
	d.Forget("b", second)
	second.Name = "changed"
	var found []string
	d.CheckAll(func(key, path string) { found = append(found, key+" "+path) })
	slices.Sort(found)
	if want := []string{"a metadata.labels.app", "b metadata.name"}; !slices.Equal(found, want) { // code may still hold them
		t.Errorf("found %q, want %q", found, want)
	}
}

// What was replaced is compared for a while, and then let go; of too many the oldest go at once.
func TestReplacedObjectsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Detector[*corev1.Pod]{Copy: (*corev1.Pod).DeepCopy}
		checked := func() (changed int) {
			d.CheckAll(func(string, string) { changed++ })
			return changed
		}
		first := pod()
		d.Track("web", first)
		d.Track("web", pod())
		time.Sleep(retention + time.Second)
		first.Labels["app"] = "x"
		if n := checked(); n != 1 { // the first comparison since it was replaced
			t.Errorf("%d found", n)
		}
		first.Labels["app"] = "y"
		if n := checked(); n != 0 || len(d.known) != 1 {
			t.Errorf("%d found, %d objects are known", n, len(d.known))
		}
		for range maxRetired + 10 {
			d.Track("web", pod())
		}
		d.Forget("web", pod())
		if len(d.known) != maxRetired || d.retired.Len() != maxRetired || len(d.byKey) != 0 {
			t.Errorf("%d objects are known, %d are retired, %d are present", len(d.known), d.retired.Len(), len(d.byKey))
		}
		time.Sleep(retention + time.Second)
		if checked(); len(d.known) != 0 {
			t.Errorf("%d objects are known", len(d.known))
		}
	})
}

// States of one object share most of their parts: a write to one of these is found once.
func TestOneWriteToSeveralStatesIsFoundOnce(t *testing.T) {
	d := Detector[*corev1.Pod]{Copy: (*corev1.Pod).DeepCopy}
	labels := map[string]string{"app": "web"}
	for range 3 {
		state := pod()
		state.Labels = labels
		d.Track("web", state)
	}
	other := pod()
	other.Labels = labels
	d.Track("other", other)
	labels["app"] = "mine"
	var found []string
	d.CheckAll(func(key, path string) { found = append(found, key+" "+path) })
	slices.Sort(found)
	if want := []string{"other metadata.labels.app", "web metadata.labels.app"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// A DeepCopy that is written by hand may make an empty slice of a nil one. That is no
// write to the object.
func TestCopiesThatAreNotExactAreNoWrites(t *testing.T) {
	copies := func(pod *corev1.Pod) *corev1.Pod {
		copied := pod.DeepCopy()
		copied.Status.Conditions = append([]corev1.PodCondition{}, pod.Status.Conditions...)
		return copied
	}
	d := Detector[*corev1.Pod]{Copy: copies}
	obj := pod()
	d.Track("ns/a", obj)
	if _, path, mutated := d.Check(obj); mutated {
		t.Errorf("%s was not written to", path)
	}
	obj.Labels["app"] = "mine"
	if _, path, mutated := d.Check(obj); !mutated || path != "metadata.labels.app" {
		t.Errorf("found %v at %q", mutated, path)
	}
	obj.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
	if _, path, mutated := d.Check(obj); !mutated || path != "status.conditions" {
		t.Errorf("found %v at %q", mutated, path)
	}
	if _, path, mutated := d.Check(obj); mutated {
		t.Errorf("%s was found twice", path)
	}
}
