package resource_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

func TestDecodeBody(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	widget := custom("example.com", "v1", "widgets", "Widget")
	for _, tt := range []struct {
		name, mediaType, body string
		r                     *resource.Resource
		strict                string // part of the strict error
	}{
		{"json", resource.MediaTypeJSON, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, pods, ""},
		{"kind completed", resource.MediaTypeJSON, `{"metadata":{"name":"a"}}`, pods, ""},
		{"unknown field", resource.MediaTypeJSON, `{"metadata":{"name":"a"},"spec":{"containers":[{"nme":"x"}]}}`, pods, `unknown field "spec.containers[0].nme"`},
		{"duplicate field", resource.MediaTypeJSON, `{"metadata":{"name":"b","name":"a"}}`, pods, `duplicate field "metadata.name"`},
		{"case matters", resource.MediaTypeJSON, `{"metadata":{"name":"a","Labels":{}}}`, pods, `unknown field "metadata.Labels"`},
		{"yaml", resource.MediaTypeYAML, "kind: Pod\nmetadata: {name: a}\n", pods, ""},
		{"yaml duplicate", resource.MediaTypeYAML, "metadata:\n  name: b\n  name: a\n", pods, `"name" already set`},
		{"yaml is a superset of json", resource.MediaTypeYAML, `{"metadata":{"name":"a"}}`, pods, ""},
		{"custom", resource.MediaTypeJSON, `{"metadata":{"name":"a"},"anything":[1,2.5]}`, widget, ""},
		{"custom yaml", resource.MediaTypeYAML, "metadata: {name: a}\nanything: [1]", widget, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj, gvk, strict, err := tt.r.DecodeBody(tt.mediaType, []byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if obj.GetName() != "a" || gvk != tt.r.GroupVersionKind() || obj.GetObjectKind().GroupVersionKind() != gvk {
				t.Errorf("got %v as %v", obj, gvk)
			}
			if joined := errors.Join(strict...); (tt.strict == "") != (joined == nil) || joined != nil && !strings.Contains(joined.Error(), tt.strict) {
				t.Errorf("strict errors %v, want %q", joined, tt.strict)
			}
		})
	}
}

func TestDecodeBadBody(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	widget := custom("example.com", "v1", "widgets", "Widget")
	deep := strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)
	for _, tt := range []struct {
		name, mediaType, body string
		r                     *resource.Resource
	}{
		{"empty", resource.MediaTypeJSON, "", pods},
		{"cut off", resource.MediaTypeJSON, `{"metadata":`, pods},
		{"null", resource.MediaTypeJSON, `null`, widget},
		{"a list", resource.MediaTypeJSON, `[]`, pods},
		{"a number", resource.MediaTypeJSON, `7`, widget},
		{"wrong type", resource.MediaTypeJSON, `{"spec":7}`, pods},
		{"trailing", resource.MediaTypeJSON, `{} {}`, pods},
		{"too deep", resource.MediaTypeJSON, deep, widget},
		{"kind is a number", resource.MediaTypeJSON, `{"kind":7}`, widget},
		{"bad apiVersion", resource.MediaTypeJSON, `{"apiVersion":"a/b/c"}`, widget},
		{"bad yaml", resource.MediaTypeYAML, "a: [", pods},
		{"yaml bomb", resource.MediaTypeYAML, "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", widget},
		{"protobuf without magic", resource.MediaTypeProtobuf, "hello", pods},
		{"protobuf garbage", resource.MediaTypeProtobuf, "k8s\x00\xff\xff\xff", pods},
		{"protobuf of a custom kind", resource.MediaTypeProtobuf, "k8s\x00", widget},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if obj, _, _, err := tt.r.DecodeBody(tt.mediaType, []byte(tt.body)); err == nil || obj != nil {
				t.Errorf("got %v, %v", obj, err)
			}
		})
	}
	var mismatch *resource.KindMismatchError
	if _, _, _, err := pods.DecodeBody(resource.MediaTypeJSON, []byte(`{"kind":"Node","apiVersion":"v1"}`)); !errors.As(err, &mismatch) {
		t.Errorf("another kind: %v", err)
	}
	if _, _, _, err := pods.DecodeBody(resource.MediaTypeJSON, []byte(`{"kind":"Pod","apiVersion":"v2"}`)); !errors.As(err, &mismatch) {
		t.Errorf("another version: %v", err)
	}
	var unsupported *resource.UnsupportedMediaTypeError
	if _, _, _, err := pods.DecodeBody("text/plain", nil); !errors.As(err, &unsupported) {
		t.Errorf("another media type: %v", err)
	}
}

func TestDecodeDeleteOptions(t *testing.T) {
	want := &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	typed, err := resource.MarshalProtobuf(want, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeleteOptions"})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]struct {
		mediaType string
		data      []byte
	}{
		"protobuf of a group":     {resource.MediaTypeProtobuf, typed},
		"json":                    {resource.MediaTypeJSON, []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)},
		"json without kind":       {resource.MediaTypeJSON, []byte(`{"gracePeriodSeconds":0}`)},
		"yaml with another group": {resource.MediaTypeYAML, []byte("kind: DeleteOptions\napiVersion: meta.k8s.io/v1\ngracePeriodSeconds: 0")},
	} {
		got, _, err := resource.DecodeDeleteOptions(body.mediaType, body.data)
		if err != nil || got.GracePeriodSeconds == nil || *got.GracePeriodSeconds != 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, _, err := resource.DecodeDeleteOptions("", nil); err != nil || got.GracePeriodSeconds != nil {
		t.Errorf("empty: %v, %v", got, err)
	}
	if _, _, err := resource.DecodeDeleteOptions(resource.MediaTypeJSON, []byte(`{"kind":"Pod","apiVersion":"v1"}`)); err == nil {
		t.Error("a Pod was taken for DeleteOptions")
	}
}

func TestProtobufFraming(t *testing.T) {
	gvk := corev1.SchemeGroupVersion.WithKind("PodList")
	var items []byte
	for _, name := range []string{"a", strings.Repeat("b", 300)} {
		raw, err := resource.MarshalProtobufMessage(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		items = resource.AppendProtobufListItem(items, raw)
	}
	body, err := resource.AppendProtobufListHead(nil, gvk, &metav1.ListMeta{ResourceVersion: "7"}, len(items))
	if err != nil {
		t.Fatal(err)
	}
	body = append(append(body, items...), resource.ProtobufListTail()...)
	var list corev1.PodList
	if _, _, err := resource.DecodeInto(resource.MediaTypeProtobuf, body, gvk, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.ResourceVersion != "7" || len(list.Items[1].Name) != 300 {
		t.Errorf("%+v", list)
	}

	frame := resource.AppendProtobufWatchEvent(nil, "ADDED", body)
	var event metav1.WatchEvent
	if err := event.Unmarshal(frame[4:]); err != nil {
		t.Fatal(err)
	}
	if length := int(frame[2])<<8 | int(frame[3]); length != len(frame)-4 || event.Type != "ADDED" || string(event.Object.Raw) != string(body) {
		t.Errorf("frame of %d bytes says %d, %s", len(frame), length, event.Type)
	}
}

func FuzzDecodeBody(f *testing.F) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	widget := custom("example.com", "v1", "widgets", "Widget")
	encoded, err := resource.MarshalProtobuf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, pods.GroupVersionKind())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, []byte(podJSON))
	f.Add(1, []byte("kind: Pod\nmetadata: {name: a}"))
	f.Add(2, encoded)
	inCBOR, err := resource.MarshalCBOR(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(3, inCBOR)
	types := []string{resource.MediaTypeJSON, resource.MediaTypeYAML, resource.MediaTypeProtobuf, resource.MediaTypeCBOR}
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		mediaType := types[uint(kind)%uint(len(types))]
		for _, r := range []*resource.Resource{pods, widget} {
			obj, _, _, err := r.DecodeBody(mediaType, body)
			if (obj == nil) != (err != nil) {
				t.Fatalf("%v, %v", obj, err)
			}
			if err != nil {
				continue
			}
			if _, err := r.Encode(t.Context(), obj); err != nil && r == pods {
				t.Fatalf("a decoded object cannot be encoded: %v", err)
			}
		}
		if _, _, err := resource.DecodeDeleteOptions(mediaType, body); err != nil {
			return
		}
	})
}
