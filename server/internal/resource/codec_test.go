package resource_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// hasDuplicates reports whether decoders may disagree about data: member
// names that occur twice, or differ from each other or from what is looked
// for by case only.
func hasDuplicates(data []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var open []map[string]bool
	expectKey := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				open = append(open, nil)
				if v == '{' {
					open[len(open)-1] = map[string]bool{}
				}
			} else {
				open = open[:len(open)-1]
			}
			expectKey = len(open) > 0 && open[len(open)-1] != nil
			continue
		case string:
			if expectKey {
				top, folded := open[len(open)-1], strings.ToLower(v)
				if top[folded] || folded != v && isWanted(folded) {
					return true
				}
				top[folded] = true
				expectKey = false
				continue
			}
		}
		expectKey = len(open) > 0 && open[len(open)-1] != nil
	}
}

func isWanted(key string) bool {
	switch strings.ToLower(strings.ToUpper(key)) {
	case "metadata", "name", "namespace", "uid", "labels":
		return true
	}
	return false
}

func TestEncodeIsCanonical(t *testing.T) {
	widget := custom("example.com", "v1", "widgets", "Widget")
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "alpha": "<&>",
		"metadata": map[string]any{"name": "n", "resourceVersion": "5", "namespace": "s", "selfLink": "x", "creationTimestamp": nil},
		"spec":     map[string]any{"size": int64(7), "resourceVersion": "kept"},
	}}
	stored, err := widget.Encode(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"n","namespace":"s"},"alpha":"<&>","spec":{"resourceVersion":"kept","size":7}}`
	if string(stored) != want {
		t.Errorf("got  %s\nwant %s", stored, want)
	}
	if obj.GetResourceVersion() != "5" {
		t.Error("Encode changed its argument")
	}
	cached, err := widget.WithRevision(stored, 42)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(want, `{"name"`, `{"resourceVersion":"42","name"`, 1); string(cached) != want {
		t.Errorf("got  %s\nwant %s", cached, want)
	}
	marshaled, err := widget.Marshal(obj)
	if err != nil || !bytes.Contains(marshaled, []byte(`"metadata":{"resourceVersion":"5","name":"n"`)) {
		t.Errorf("Marshal: %s, %v", marshaled, err)
	}
	got, err := widget.Decode(t.Context(), cached)
	if err != nil || got.GetResourceVersion() != "42" || got.GetName() != "n" {
		t.Errorf("Decode: %v, %v", got, err)
	}
}

func TestEncodeCompletesTheKind(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	stored, err := pods.Encode(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	if err != nil || !bytes.HasPrefix(stored, []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},`)) {
		t.Errorf("%s, %v", stored, err)
	}
}

func TestWithRevisionOfForeignValues(t *testing.T) {
	widget := custom("example.com", "v1", "widgets", "Widget")
	for _, tt := range []struct{ name, value, want string }{
		{"another order", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{},"metadata":{"name":"n","resourceVersion":"1"}}` + "\n",
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9","name":"n"},"spec":{}}`},
		{"keys that need escapes", `{"kind":"Widget","a\u0000\u007f\"":1,"\u006detadata":{"name":"n"},"apiVersion":"example.com/v1"}`,
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9","name":"n"},"a\u0000\u007f\"":1}`},
		{"empty metadata", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{}}`,
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"}}`},
		{"a revision that should not be there", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1","name":"n"}}`,
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9","name":"n"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.value
			got, err := widget.WithRevision([]byte(tt.value), 9)
			if err != nil || string(got) != tt.want || tt.value != before {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
	for _, bad := range []string{
		"", "x", "k8s\x00", "k8s\x00\xff\xff", `{"kind":"Widget"`, `{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{}}`,
		`{"kind":"Widget","apiVersion":"example.com/v2","metadata":{}}`, `[]`, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":3}`,
	} {
		if got, err := widget.WithRevision([]byte(bad), 9); err == nil {
			t.Errorf("%q gave %s", bad, got)
		}
	}
}

func TestWithRevisionAllocatesOnce(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	stored := storedPod(t)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := pods.WithRevision(stored, 12345); err != nil {
			t.Fatal(err)
		}
	}); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecodeDoesNotShareMemory(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	cached := []byte(podJSON)
	obj, err := pods.Decode(t.Context(), cached)
	if err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopyObject()
	for i := range cached {
		cached[i] = 'x'
	}
	if !reflect.DeepEqual(obj, before) {
		t.Error("a decoded object changes with the bytes it came from")
	}
}

func FuzzWithRevision(f *testing.F) {
	f.Add([]byte(podJSON))
	f.Add([]byte(`{"apiVersion":"v1","metadata":{"resourceVersion":"3","a":[{}]},"kind":"Pod"}`))
	f.Add([]byte("k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12\x00"))
	pods := builtin.Table().Lookup("", "v1", "pods")
	f.Fuzz(func(t *testing.T, value []byte) {
		cached, err := pods.WithRevision(value, 77)
		if err != nil {
			return
		}
		if again, err := pods.WithRevision(value, 77); err != nil || !bytes.Equal(again, cached) {
			t.Fatalf("not the same twice: %s, %v", again, err)
		}
		if json.Valid(value) && !json.Valid(cached) {
			t.Fatalf("JSON became %s", cached)
		}
		if !bytes.HasPrefix(cached, pods.Prefix()) {
			t.Fatalf("not canonical: %s", cached)
		}
	})
}
