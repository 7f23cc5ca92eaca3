package revisionhistory

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTemplatesComeBackAsTheyWere(t *testing.T) {
	template := &corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"b": "2", "a": "1"}
	template.Spec.Containers = []corev1.Container{{Name: "c", Image: "db:1"}}
	data, err := encode(template)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Template(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}})
	if err != nil || !equality.Semantic.DeepEqual(back, template) {
		t.Errorf("%+v, %v", back, err)
	}
	if _, err := Template(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte("{")}}); err == nil {
		t.Error("a broken revision is read")
	}
}

// TestRevisionsAreComparedByMeaning: another server may have written the keys
// in another order.
func TestRevisionsAreComparedByMeaning(t *testing.T) {
	template := &corev1.PodTemplateSpec{}
	template.Spec.Containers = []corev1.Container{{Name: "c", Image: "db:1"}}
	data, err := encode(template)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"spec":{"template":{"spec":{"containers":[{"image":"db:1","name":"c","resources":{}}]},"metadata":{},"$patch":"replace"}}}`: true,
		`{"spec":{"template":{"spec":{"containers":[{"image":"db:2","name":"c"}]},"$patch":"replace"}}}`:                              false,
	} {
		same, err := holds(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(text)}}, data)
		if err != nil || same != want {
			t.Errorf("%s: %v, %v", text, same, err)
		}
	}
}

func TestCollisionsGetOtherNames(t *testing.T) {
	if a, b := hashOf([]byte("x"), 0), hashOf([]byte("x"), 1); a == b {
		t.Errorf("both are %s", a)
	}
}
