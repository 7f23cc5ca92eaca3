package resource_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// field returns a protobuf field with a length.
func field(number int, content []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(content))), content...)
}

// nestedSchemas is a CustomResourceDefinition whose schema is not what is not
// what ... a schema is, as a message of the given size.
func nestedSchemas(size int) []byte {
	const not = 28 // field of JSONSchemaProps
	back := make([]byte, 0, size+16)
	for len(back) < size { // written from the end
		head := binary.AppendUvarint(nil, uint64(not)<<3|2)
		head = binary.AppendUvarint(head, uint64(len(back)))
		slices.Reverse(head)
		back = append(back, head...)
	}
	slices.Reverse(back)
	version := field(4, field(1, back)) // schema.openAPIV3Schema
	return field(2, field(7, version))  // spec.versions
}

// TestProtobufNestsTooDeep: without the bound this ends the process.
func TestProtobufNestsTooDeep(t *testing.T) {
	definitions := builtin.Table().Lookup("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	body := resource.AppendProtobufEnvelope(nil, definitions.GroupVersionKind(), nestedSchemas(3<<20))
	_, _, _, err := definitions.DecodeBody(resource.MediaTypeProtobuf, body)
	if err == nil || !strings.Contains(err.Error(), "nests deeper than 10000 levels") {
		t.Fatalf("%v", err)
	}
	body = resource.AppendProtobufEnvelope(nil, definitions.GroupVersionKind(), nestedSchemas(40_000))
	if _, _, _, err = definitions.DecodeBody(resource.MediaTypeProtobuf, body); err != nil {
		t.Fatalf("some 9,000 levels: %v", err)
	}
}

// TestProtobufOfLargeStrings: what happens to read as messages in messages is
// not taken for too many of them.
func TestProtobufOfLargeStrings(t *testing.T) {
	configMaps := builtin.Table().Lookup("", "v1", "configmaps")
	for _, text := range []string{"z", "\n", "\x0a\x08", "a: b\n", "\x12\xff\x7f", strings.Repeat("\x0a\x02\x0a\x00", 20)} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"large": strings.Repeat(text, 1<<20/len(text))}}
		body, err := resource.MarshalProtobuf(cm, configMaps.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := configMaps.DecodeBody(resource.MediaTypeProtobuf, body); err != nil {
			t.Errorf("%q, many times: %v", text, err)
		}
	}
}
