package patch_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/patch"
)

func ExampleJSON() {
	p, err := patch.JSON(
		patch.Test("/spec/replicas", 3),
		patch.Replace("/spec/replicas", 5),
		patch.Add(patch.Pointer("metadata", "annotations", "example.com/scaled"), "by hand"),
	)
	fmt.Println(string(p.Data), err)
	// Output: [{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":5},{"op":"add","path":"/metadata/annotations/example.com~1scaled","value":"by hand"}] <nil>
}

func ExampleStrategicMerge() {
	old := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "one"}, {Name: "b", Image: "one"}}},
	}
	changed := old.DeepCopy()
	changed.Spec.Containers[0].Image = "two"
	p, err := patch.StrategicMerge(old, changed, patch.Options{})
	fmt.Println(string(p.Data), err)
	// Output: {"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"image":"two","name":"a"}]}} <nil>
}
