package codec

import (
	"bytes"
	stdjson "encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

// Every kind is filled at random and read by our decoders and by Kubernetes'
// own: the objects must be the same.
func TestDecodersAgreeWithKubernetes(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), clientgo.Codecs)
	compared := 0
	for gvk, typ := range clientgo.Scheme.AllKnownTypes() {
		if _, ok := wiretest.Plurals[gvk.Kind]; !ok {
			continue
		}
		obj := reflect.New(typ).Interface().(runtime.Object)
		for range 3 {
			fill.Fill(obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			data, err := stdjson.Marshal(obj)
			if err != nil {
				continue // a random value that JSON cannot hold
			}
			want, got := reflect.New(typ).Interface(), reflect.New(typ).Interface().(runtime.Object)
			if err := kjson.UnmarshalCaseSensitivePreserveInts(data, want); err != nil {
				continue
			}
			if err := unmarshalJSON(data, got); err != nil {
				t.Fatalf("%v: %v\n%s", gvk, err, data)
			}
			if !apiequality.Semantic.DeepEqual(want, got) {
				t.Fatalf("%v: JSON: got %#v, want %#v", gvk, got, want)
			}
			checkProtobuf(t, gvk, typ, want.(runtime.Object))
			compared++
		}
	}
	if compared < 2*len(wiretest.Plurals) {
		t.Errorf("only %d objects could be compared", compared)
	}
}

func checkProtobuf(t *testing.T, gvk schema.GroupVersionKind, typ reflect.Type, obj runtime.Object) {
	t.Helper()
	data, contentType, err := Encode(scheme.Default, obj, true)
	if err != nil || contentType != Protobuf {
		t.Fatalf("%v: %q, %v", gvk, contentType, err)
	}
	theirs, _, err := clientgo.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("%v: Kubernetes cannot read our protobuf: %v", gvk, err)
	}
	ours := reflect.New(typ).Interface().(runtime.Object)
	if err := unmarshalProtobuf(data, ours); err != nil {
		t.Fatalf("%v: %v", gvk, err)
	}
	ours.GetObjectKind().SetGroupVersionKind(gvk)
	theirs.GetObjectKind().SetGroupVersionKind(gvk)
	if !apiequality.Semantic.DeepEqual(ours, theirs) {
		t.Fatalf("%v: protobuf: got %#v, want %#v", gvk, ours, theirs)
	}
}

func TestUnstructuredAgreesWithKubernetes(t *testing.T) {
	docs := []string{
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"x"},"i":9007199254740993,"neg":-1,"f":1.5,"e":1e3,"b":true,"n":null,"a":[1,"x",{}],"empty":[]}`,
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"\u00e9\n\"quoted\""},"big":123456789012345678901234567890}`,
		`{"apiVersion":"v1","kind":"A","metadata":{"labels":{"a":"b"}},"twice":1,"twice":2}`,
	}
	for _, doc := range docs {
		var want, got unstructured.Unstructured
		if err := want.UnmarshalJSON([]byte(doc)); err != nil {
			t.Fatal(err)
		}
		if err := unmarshalJSON([]byte(doc), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want.Object, got.Object) {
			t.Errorf("got  %#v\nwant %#v", got.Object, want.Object)
		}
	}
	for _, doc := range []string{`[]`, `1`, `{"a":[1}`, `{"a":`, ``, `{} {}`, `{"a":[1,}`} {
		if err := unmarshalJSON([]byte(doc), &unstructured.Unstructured{}); err == nil {
			t.Errorf("%s: no error", doc)
		}
	}
}

// An object may come out of a cache that others read.
func TestEncodeLeavesTheObjectAlone(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Name = "a"
	data, contentType, err := Encode(scheme.Default, pod, false)
	if err != nil || contentType != JSON {
		t.Fatal(contentType, err)
	}
	if !bytes.Contains(data, []byte(`"kind":"Pod","apiVersion":"v1"`)) {
		t.Errorf("the body does not say what it is: %s", data)
	}
	if pod.Kind != "" || pod.APIVersion != "" {
		t.Error("encode changed the object")
	}
}

func TestEncodeNeedsAKind(t *testing.T) {
	_, _, err := Encode(scheme.Default, &unstructured.Unstructured{Object: map[string]any{}}, false)
	if err == nil || !strings.Contains(err.Error(), "apiVersion") {
		t.Errorf("got %v", err)
	}
}

// podCodec is what client.For gives for pods.
func podCodec() *Codec[*corev1.Pod] {
	return New(corev1.SchemeGroupVersion.WithKind("Pod"), FormTyped, func() *corev1.Pod { return &corev1.Pod{} })
}

func dynamicCodec() *Codec[*unstructured.Unstructured] {
	return New(schema.GroupVersionKind{}, FormUnstructured, func() *unstructured.Unstructured { return &unstructured.Unstructured{} })
}

func metadataCodec() *Codec[*metav1.PartialObjectMetadata] {
	return New(schema.GroupVersionKind{}, FormMetadata, func() *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} })
}
