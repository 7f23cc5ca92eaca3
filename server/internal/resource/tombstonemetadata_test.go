package resource_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

func TestTombstoneMetadata(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	for _, test := range []struct{ name, value, want string }{
		{"minimal", `{"metadata":{"name":"n"}}`, `{"metadata":{"name":"n"}}`},
		{"metadata stays, managed fields go",
			`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5","name":"n","managedFields":[{"manager":"m"}],"ownerReferences":[{"uid":"u"}]}}`,
			`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5","name":"n","ownerReferences":[{"uid":"u"}]}}`},
		{"fields stay, what is beside them goes",
			`{"metadata":{"name":"n"},"spec":{"containers":[{"name":"c"}],"nodeName":"x","hostNetwork":true},"status":{"phase":"Running","conditions":[]},"other":{"spec":1}}`,
			`{"metadata":{"name":"n"},"spec":{"nodeName":"x","hostNetwork":true},"status":{"phase":"Running"}}`},
		{"what is not as it should be stays as it is", `{"metadata":{"name":"n"},"spec":[1],"status":null}`, `{"metadata":{"name":"n"},"spec":[1],"status":null}`},
	} {
		got, err := pods.TombstoneMetadata([]byte(test.value))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.name, got, err, test.want)
		}
	}
	if got, err := pods.TombstoneMetadata([]byte(podJSON)); err != nil || len(got) > len(podJSON)/3 {
		t.Errorf("%d bytes remain of %d, %v", len(got), len(podJSON), err)
	}
	for cut := range len(podJSON) {
		if _, err := pods.TombstoneMetadata([]byte(podJSON[:cut])); err == nil {
			t.Fatalf("half an object was accepted: %s", podJSON[:cut])
		}
	}
}

// FuzzTombstoneMetadata holds tombstone metadata to what it was made of: the same attributes, and
// valid JSON if that was.
func FuzzTombstoneMetadata(f *testing.F) {
	f.Add([]byte(podJSON))
	f.Add([]byte(`{"metadata":{"name":"n","labels":{"a":"\u0041"}},"sp\u0065c":{"nodeName":"x"}}`))
	f.Add([]byte(strings.Repeat(`{"status":`, 20)))
	pods := builtin.Table().Lookup("", "v1", "pods")
	f.Fuzz(func(t *testing.T, data []byte) {
		attributes, err := pods.Attributes(data)
		if err != nil {
			return
		}
		metadata, err := pods.TombstoneMetadata(data)
		if err != nil {
			if json.Valid(data) {
				t.Fatalf("valid JSON refused: %v", err)
			}
			return
		}
		if json.Valid(data) && !json.Valid(metadata) {
			t.Fatalf("the metadata is not valid: %s", metadata)
		}
		if again, err := pods.Attributes(metadata); err != nil || !reflect.DeepEqual(again, attributes) {
			t.Fatalf("attributes of the metadata are %+v, %v, want %+v", again, err, attributes)
		}
	})
}

func BenchmarkTombstoneMetadata(b *testing.B) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pods.TombstoneMetadata([]byte(podJSON)); err != nil {
			b.Fatal(err)
		}
	}
}
