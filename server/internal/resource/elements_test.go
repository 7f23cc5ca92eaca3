package resource_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestElementsAreCounted: about as many as there are, in each format, and few in what has few.
func TestElementsAreCounted(t *testing.T) {
	const many = 10_000
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, many)}}
	text := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, Data: map[string]string{"a": strings.Repeat("{\"\u00a0, - null\n", many)}}
	encode := func(obj resource.Object) (bodies map[string][]byte) {
		kind := corev1.SchemeGroupVersion.WithKind(obj.GetObjectKind().GroupVersionKind().Kind)
		protobuf, err := resource.MarshalProtobuf(obj, kind)
		if err != nil {
			t.Fatal(err)
		}
		cbor, err := resource.MarshalCBOR(obj)
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]byte{resource.MediaTypeProtobuf: protobuf, resource.MediaTypeCBOR: cbor}
	}
	bodies := encode(pod)
	bodies["application/json"] = []byte(`{"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat("{},", many), ",") + `]}}`)
	bodies["application/merge-patch+json"] = []byte(`{"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat("null,", many), ",") + `]}}`)
	bodies["application/yaml"] = []byte("spec:\n  containers:\n" + strings.Repeat("  -\n", many))
	bodies["application/apply-patch+yaml"] = append([]byte("\n "), bodies["application/json"]...)
	for mediaType, body := range bodies {
		if n := resource.CountElements(mediaType, body); n < many/2 || n > 4*many {
			t.Errorf("%s: %d elements of %d", mediaType, n, many)
		}
	}
	bodies = encode(text)
	bodies["application/json"] = []byte(`{"data":{"a":"` + strings.Repeat(`{\"\\, null`, many) + `","b":"c"}}`)
	bodies["application/yaml"] = []byte("data:\n  a: |\n" + strings.Repeat("    some {text}, null\n", many))
	bodies["application/apply-patch+yaml"] = bodies["application/json"]
	for mediaType, body := range bodies {
		if n := resource.CountElements(mediaType, body); n > 20 {
			t.Errorf("%s: %d elements in a text", mediaType, n)
		}
	}
}

// TestElementsInBracketsOfYAML: they are counted when they have been read, and before they become structs.
func TestElementsInBracketsOfYAML(t *testing.T) {
	decode := func(elements string, n int) error {
		_, err := resource.DecodeFields(resource.MediaTypeYAML, []byte("kind: Pod\nspec:\n  containers: ["+strings.Repeat(elements, n)+"]\n"), &unstructured.Unstructured{})
		return err
	}
	if err := decode("{},", 1000); err != nil {
		t.Error(err)
	}
	for _, elements := range []string{"{},", "~,"} {
		if err := decode(elements, 50_000); err == nil || !strings.Contains(err.Error(), "50") {
			t.Errorf("50,000 times %s: %v", elements, err)
		}
	}
}

func FuzzElements(f *testing.F) {
	f.Add("application/cbor", []byte("\xd9\xd9\xf7\xa1\x41a\xf6"))
	f.Add(resource.MediaTypeProtobuf, []byte("k8s\x00\x0a\x02\x0a\x00"))
	f.Add("application/json", []byte(`{"a":"\`))
	f.Fuzz(func(t *testing.T, mediaType string, body []byte) {
		if n := resource.CountElements(mediaType, body); n < 0 || n > 3*len(body) {
			t.Errorf("%d elements in %d bytes", n, len(body))
		}
	})
}
