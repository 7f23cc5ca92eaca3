package tracing

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestResourceVersionOfAnswers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", GenerateName: "p-", Namespace: "ns", UID: "u", ResourceVersion: "4711",
		Generation: 5, Annotations: map[string]string{"a": strings.Repeat("x", 30_000)}}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}
	encoded, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	protobuf := "k8s\x00" + string(encoded)
	for name, c := range map[string]struct{ answer, want string }{
		"JSON":                   {`{"kind":"Pod","metadata":{"name":"p","resourceVersion":"4711"}}`, "4711"},
		"indented JSON":          {`{"metadata": {"resourceVersion": "4711"}}`, "4711"},
		"quoted in a string":     {`{"metadata":{"annotations":{"last":"{\"resourceVersion\":\"1\"}"},"resourceVersion":"4711"}}`, "4711"},
		"JSON without":           {`{"kind":"Status","metadata":{}}`, ""},
		"protobuf":               {protobuf, "4711"},
		"the begin of protobuf":  {protobuf[:1000], "4711"},
		"too little of protobuf": {protobuf[:20], ""},
		"no protobuf":            {"k8s\x00" + strings.Repeat("\xff", 20), ""},
		"nothing":                {"", ""},
	} {
		if got := resourceVersionOf([]byte(c.answer)); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOldWritesAreForgotten(t *testing.T) {
	var w recentWrites
	for n := range 3 * maxWrites {
		w.add(writeKey{"ns", fmt.Sprint(n)}, trace.SpanContext{})
	}
	if _, ok := w.spans[writeKey{"ns", fmt.Sprint(2*maxWrites - 1)}]; ok || len(w.spans) != maxWrites {
		t.Errorf("%d are remembered", len(w.spans))
	}
	if _, ok := w.spans[writeKey{"ns", fmt.Sprint(2 * maxWrites)}]; !ok {
		t.Error("a recent one is forgotten")
	}
}
