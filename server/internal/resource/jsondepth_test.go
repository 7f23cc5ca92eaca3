package resource

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// TestWhatIsWrittenCanBeRead: the limit is that of the decoder, and brackets in strings do not count.
func TestWhatIsWrittenCanBeRead(t *testing.T) {
	nested := func(levels int) string { return strings.Repeat(`{"a":[`, levels/2) + strings.Repeat("]}", levels/2) }
	for name, text := range map[string]string{
		"as deep as can be": nested(maxJSONDepth), "deeper": nested(maxJSONDepth + 2), "strings": `{"a":"` + strings.Repeat(`{\"[`, maxJSONDepth) + `"}`,
		"wide": "[" + strings.Repeat("{},", maxJSONDepth) + "{}]",
	} {
		var read any
		unreadable := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &read)
		if err := checkJSONDepth([]byte(text)); (err != nil) != (unreadable != nil) {
			t.Errorf("%s: %v, and the decoder says %v", name, err, unreadable)
		}
	}
}

// TestEncodeRefusesWhatCannotBeRead: an object that was stored so deep could neither be changed nor deleted.
func TestEncodeRefusesWhatCannotBeRead(t *testing.T) {
	r := &Resource{Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets"}
	var value any = "x"
	for range maxJSONDepth {
		value = map[string]any{"a": value}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "deep"}, "spec": value}}
	if _, err := r.Encode(t.Context(), obj); err == nil || !strings.Contains(err.Error(), "nests deeper than 10000 levels") {
		t.Errorf("Encode: %v", err)
	}
}
