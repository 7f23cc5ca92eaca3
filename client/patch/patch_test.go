package patch_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client/patch"
)

// pod has two containers.
func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "7"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "one"}, {Name: "b", Image: "one"}}},
	}
}

func TestMerge(t *testing.T) {
	changed := pod()
	changed.ResourceVersion = "8"
	changed.Labels = map[string]string{"app": "web"}
	p, err := patch.Merge(pod(), changed, patch.Options{})
	if err != nil || string(p.Data) != `{"metadata":{"labels":{"app":"web"}}}` || p.IsEmpty() {
		t.Errorf("got %s, %v", p.Data, err)
	}
	p, err = patch.Merge(pod(), changed, patch.Options{OptimisticLock: true})
	if err != nil || string(p.Data) != `{"metadata":{"labels":{"app":"web"},"resourceVersion":"7"}}` {
		t.Errorf("got %s, %v", p.Data, err)
	}
	if p, err := patch.Merge(pod(), pod(), patch.Options{OptimisticLock: true}); err != nil || !p.IsEmpty() {
		t.Errorf("without a difference: %s, %v", p.Data, err)
	}
}

func TestStrategicMergeChangesOneElement(t *testing.T) {
	changed := pod()
	changed.Spec.Containers[1].Image = "two"
	p, err := patch.StrategicMerge(pod(), changed, patch.Options{})
	if err != nil || string(p.Data) != `{"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"image":"two","name":"b"}]}}` {
		t.Errorf("got %s, %v", p.Data, err)
	}
	p, err = patch.StrategicMerge(pod(), changed, patch.Options{OptimisticLock: true})
	if err != nil || !strings.Contains(string(p.Data), `"resourceVersion":"7"`) {
		t.Errorf("got %s, %v", p.Data, err)
	}
	if p, err := patch.StrategicMerge(pod(), pod(), patch.Options{OptimisticLock: true}); err != nil || !p.IsEmpty() {
		t.Errorf("without a difference: %s, %v", p.Data, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	other := pod()
	other.Name = "other"
	unlocked := pod()
	unlocked.ResourceVersion = ""
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetName("a")
	changed := pod()
	changed.Labels = map[string]string{"app": "web"}
	for want, call := range map[string]func() error{
		"cannot rename": func() error { _, err := patch.StrategicMerge(pod(), other, patch.Options{}); return err },
		"needs a resourceVersion": func() error {
			_, err := patch.Merge(unlocked, changed, patch.Options{OptimisticLock: true})
			return err
		},
		"needs a struct of the API":            func() error { _, err := patch.StrategicMerge(u, u, patch.Options{}); return err },
		"must begin with":                      func() error { _, err := patch.JSON(patch.Remove("spec/replicas")); return err },
		"operation 1 of the JSON patch: it is": func() error { _, err := patch.JSON(patch.Remove("/a"), patch.Operation{}); return err },
		"unsupported type":                     func() error { _, err := patch.JSON(patch.Add("/a", make(chan int))); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
