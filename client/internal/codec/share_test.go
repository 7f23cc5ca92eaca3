package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

// filler makes values of any API type.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*p = *resource.NewMilliQuantity(int64(f.IntN(5)), resource.DecimalSI)
		return
	case *metav1.Time:
		*p = metav1.Unix(int64(f.IntN(1e9)+1), 0)
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.Unix(int64(f.IntN(1e9)+1), 1000))
		return
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{intstr.FromInt32(7), intstr.FromString("http")}[f.IntN(2)]
		return
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1(fmt.Sprintf(`{"f:%d":{}}`, f.IntN(3)))
		return
	case *runtime.RawExtension:
		p.Raw = fmt.Appendf(nil, `{"a":%d}`, f.IntN(3))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Name != "TypeMeta" {
				f.fill(v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		if depth > 0 && f.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if n := f.IntN(3); depth > 0 && n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				f.fill(v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		if n := f.IntN(3); depth > 0 && n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				f.fill(key, depth-1)
				f.fill(value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString([]string{"", "a", "some longer text"}[f.IntN(3)])
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 1 << 30}[f.IntN(4)])
	case reflect.Uint8:
		v.SetUint(uint64(f.IntN(256)))
	}
}

// TestShapesReadWhatGeneratedCodeReads: every built-in type, decoded by its
// shape, is what its generated code decodes; twice, as the second time parts
// are shared.
func TestShapesReadWhatGeneratedCodeReads(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(1, 2))}
	shaped := 0
	for gvk, typ := range clientgo.Scheme.AllKnownTypes() {
		made, ok := reflect.New(typ).Interface().(interface {
			protoUnmarshaler
			protoMarshaler
		})
		if _, isObject := made.(metav1.Object); !ok || !isObject {
			continue
		}
		if shapeOf(typ) != nil {
			shaped++
		} else {
			t.Errorf("%v has no shape", gvk)
		}
		if jsonShapeOf(typ) == nil {
			t.Errorf("%v has no shape in JSON", gvk)
		}
		share := podCodec().WithInterning().newWatchSharer()
		fromJSON := &jsonDecoder{share: share, sites: siteTable{objects: objectsWithoutSites}}
		for range 20 {
			f.fill(reflect.ValueOf(made).Elem(), 9)
			encoded, err := made.Marshal()
			if err != nil {
				t.Fatalf("%v: %v", gvk, err)
			}
			want := reflect.New(typ).Interface().(protoUnmarshaler)
			if err := want.Unmarshal(encoded); err != nil {
				t.Fatalf("%v: %v", gvk, err)
			}
			got := reflect.New(typ).Interface().(protoUnmarshaler)
			share.lastStates.begin(got)
			if err := share.object(shapeOf(typ), share.beginObject(shapeOf(typ)), reflect.ValueOf(got).UnsafePointer(), encoded); err != nil {
				t.Fatalf("%v: %v", gvk, err)
			}
			share.lastStates.end()
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%v: got %+v\nwant %+v", gvk, got, want)
			}
			compareJSON(t, fromJSON, made)
		}
	}
	if shaped < 50 {
		t.Errorf("only %d types have a shape", shaped)
	}
}

// compareJSON compares what is read by shape with what jsonv2 reads.
func compareJSON(t *testing.T, d *jsonDecoder, obj any) {
	t.Helper()
	doc, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	typ := reflect.TypeOf(obj).Elem()
	want, got := reflect.New(typ), reflect.New(typ)
	if err := jsonv2.Unmarshal(doc, want.Interface(), jsonOptions); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	if _, err := d.decode(doc, got.Interface()); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	if !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Fatalf("%s: got %+v\nwant %+v", doc, got, want)
	}
}

// FuzzJSONShapes: whatever jsonv2 makes of a document, so does the decoder that
// shares, and it keeps nothing of the buffer.
func FuzzJSONShapes(f *testing.F) {
	doc, err := json.Marshal(wiretest.Pod(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	for _, doc := range []string{
		`{}`, `{"metadata":null,"spec":{"priority":12}}`, ` { "metadata" : { "name" : "a\"b\\" , "labels" : { } } } `,
		`{"spec":{"priority":1.0,"containers":[]}}`, `{"spec":{"containers":[{"name":"a"}],"containers":null}}`,
		`{"metadata":{"labels":{"a":"b","a":"c"}},"metadata":{"uid":"1"}}`, `{"spec":{"priority":123456789012345678901}}`,
		`{"spec":[]}`, `{"metadata":{"uid":"7"},"spec":{"nodeName":"a"},"spec":{"hostname":"b"}}`, `{"metadata":{"uid":"7"},"spec":{"hostname":"b"}}`, `{"spec":{"hostNetwork":1}}`, `{"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","n\u0061me":"x"}}`,
		`{"metadata":{"managedFields":[{"fieldsV1": {"f:a" : {}} }]}}`, `{"spec":{"containers":[null,{"ports":[{"hostPort":-1}]}]}}`,
		"{\"metadata\":{\"name\":\"\xff\"}}", `{"kind":"Pod","unknown":[{"a":["b"]},{}],"apiVersion":"v1"}`,
	} {
		f.Add([]byte(doc))
	}
	decoder := &jsonDecoder{share: podCodec().WithInterning().newWatchSharer(), sites: siteTable{objects: objectsWithoutSites}}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := jsontext.Value(data)
		if !doc.IsValid(jsonOptions) {
			return // it does not come this far
		}
		doc = bytes.TrimSpace(doc)
		want := &corev1.Pod{}
		wantErr := jsonv2.Unmarshal(doc, want, jsonOptions)
		for range 3 {
			buffer, got := bytes.Clone(doc), &corev1.Pod{}
			err := decoder.unmarshal(buffer, got)
			clear(buffer)
			if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, %v\nwant %+v, %v", got, err, want, wantErr)
			}
		}
	})
}

// FuzzJSONValues: whatever jsontext's tokens say that a document is, so does the
// decoder of objects without a Go type, which refuses no valid object.
func FuzzJSONValues(f *testing.F) {
	doc, err := json.Marshal(wiretest.Pod(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	for _, doc := range []string{
		`{}`, ` {"a" : [ ] , "b":{"c":[1,-0,1.0,1e3,9223372036854775807,9223372036854775808,-9223372036854775808]}}`,
		`{"a":true,"a":false,"b":null}`, `{"\u0061":"\ud83d\ude42","b":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":1}{"b":2}`, `{"a":01}`, `{"a":1,}`, `{"a" 1}`, `[1]`, `{"a":tru}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		share := &sharer{strings: &stringTable{}}
		got, want := &unstructured.Unstructured{}, (map[string]any)(nil)
		err := (&jsonDecoder{share: share}).unmarshal(doc, got)
		tokens := &valueDecoder{dec: jsontext.NewDecoder(bytes.NewReader(doc), jsonOptions), shared: share.strings}
		want, wantErr := tokens.object()
		if wantErr == nil {
			if _, err := tokens.dec.ReadToken(); !errors.Is(err, io.EOF) {
				wantErr = errors.New("more follows")
			}
		}
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got.Object, want) {
			t.Fatalf("got %v, %v\nwant %v, %v", got.Object, err, want, wantErr)
		}
	})
}

// FuzzShapes: whatever the generated code makes of a message, so does the
// decoder that shares, and it keeps nothing of the buffer.
func FuzzShapes(f *testing.F) {
	for i := range 3 {
		encoded, err := wiretest.Pod(i).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
		f.Add(append(encoded, encoded...)) // everything twice: merged
		f.Add(append(encoded, 18, 0))      // a second, empty body
		f.Add(encoded[:len(encoded)-1])
	}
	share := podCodec().WithInterning().newWatchSharer()
	f.Fuzz(func(t *testing.T, data []byte) {
		want := &corev1.Pod{}
		wantErr := want.Unmarshal(data)
		for range 3 { // the third time, everything has been seen
			buffer := append([]byte(nil), data...)
			got := &corev1.Pod{}
			err := share.unmarshalShared(buffer, got)
			clear(buffer)
			if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, %v\nwant %+v, %v", got, err, want, wantErr)
			}
		}
	})
}

// TestInterning: equal parts of a stream's objects are one with Interning and
// apart without, in every encoding. Hashes differ from process to process, and
// two parts that come again and again may fall into one slot and drive each
// other out; so each part must be shared once in several attempts, whose parts
// have other hashes.
func TestInterning(t *testing.T) {
	same := func(a, b *corev1.Pod) map[string]bool {
		return map[string]bool{
			"labels":     reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer(),
			"owners":     &a.OwnerReferences[0] == &b.OwnerReferences[0],
			"containers": &a.Spec.Containers[0] == &b.Spec.Containers[0],
		}
	}
	const attempts, many = 10, 100
	for _, protobuf := range []bool{false, true} {
		for _, interning := range []bool{false, true} {
			c := podCodec()
			if interning {
				c = c.WithInterning()
			}
			shared := map[string]int{}
			for attempt := range attempts {
				want := &corev1.PodList{}
				for n := range many {
					pod := wiretest.Pod(n)
					mark := fmt.Sprint(attempt)
					pod.Labels["attempt"], pod.OwnerReferences[0].Name, pod.Spec.Containers[0].Image = mark, mark, mark
					want.Items = append(want.Items, *pod)
				}
				body, contentType, err := Encode(scheme.Default, want, protobuf)
				if err != nil {
					t.Fatal(err)
				}
				list, err := c.DecodeList(EncodingOf(contentType), NewSource(bytes.NewReader(body), 1<<20))
				if err != nil {
					t.Fatal(err)
				}
				for n, pod := range list.Items {
					if !reflect.DeepEqual(pod, &want.Items[n]) {
						t.Fatalf("got %+v, want %+v", pod, want.Items[n])
					}
				}
				for part, is := range same(list.Items[many-2], list.Items[many-1]) {
					if is {
						shared[part]++
					}
				}
			}
			for part := range same(wiretest.Pod(1), wiretest.Pod(2)) {
				if shared[part] > 0 != interning {
					t.Errorf("protobuf %v, interning %v: %s were shared in %d of %d attempts", protobuf, interning, part, shared[part], attempts)
				}
			}
		}
	}
}

// TestChangesShareWhatHasNotChanged: of an object that comes again on a watch,
// the new state has the old one's body if that is the same.
func TestChangesShareWhatHasNotChanged(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		first, second, third := wiretest.Pod(1), wiretest.Pod(1), wiretest.Pod(1)
		second.Status.Phase = corev1.PodFailed
		third.Status.Phase, third.Spec.Containers[0].Image = corev1.PodFailed, "another"
		var stream []byte
		for _, pod := range []*corev1.Pod{first, second, third} {
			stream = append(stream, encodedEvent(t, watch.Modified, pod, protobuf)...)
		}
		c := podCodec().WithInterning()
		share := c.newWatchSharer()
		src := NewSource(bytes.NewReader(stream), 1<<20)
		var events eventReader[*corev1.Pod] = &jsonEvents[*corev1.Pod]{codec: c, src: src, dec: newJSONReader(src, share)}
		if protobuf {
			events = &protobufEvents[*corev1.Pod]{codec: c, src: src, share: share}
		}
		var got []*corev1.Pod
		for _, want := range []*corev1.Pod{first, second, third} {
			ev, _, err := events.next()
			if err != nil || !reflect.DeepEqual(ev.Object, want) {
				t.Fatalf("protobuf %v: got %+v, %v; want %+v", protobuf, ev.Object, err, want)
			}
			got = append(got, ev.Object)
		}
		if &got[0].Spec.Containers[0] != &got[1].Spec.Containers[0] {
			t.Errorf("protobuf %v: a change of the status has made another spec", protobuf)
		}
		if &got[1].Spec.Containers[0] == &got[2].Spec.Containers[0] {
			t.Errorf("protobuf %v: a change of the spec has changed the old state", protobuf)
		}
		if share.lastStates.forget(first.UID); len(share.lastStates.last) != 0 {
			t.Errorf("protobuf %v: a deleted object is remembered", protobuf)
		}
	}
}

// TestBookmarksNeedNoTables: most watches are idle.
func TestBookmarksNeedNoTables(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		c := podCodec().WithInterning()
		share := c.newWatchSharer()
		src := NewSource(bytes.NewReader(append(encodedEvent(t, watch.Bookmark, wiretest.Bookmark("7", true), protobuf), encodedEvent(t, watch.Bookmark, wiretest.Bookmark("8", false), protobuf)...)), 1<<20)
		var events eventReader[*corev1.Pod] = &jsonEvents[*corev1.Pod]{codec: c, src: src, dec: newJSONReader(src, share)}
		if protobuf {
			events = &protobufEvents[*corev1.Pod]{codec: c, src: src, share: share}
		}
		for _, version := range []string{"7", "8"} {
			if ev, _, err := events.next(); err != nil || ev.Object.ResourceVersion != version {
				t.Errorf("protobuf %v: %+v, %v", protobuf, ev, err)
			}
		}
		if share.parts.slots != nil || share.strings.strings != nil {
			t.Errorf("protobuf %v: bookmarks made tables", protobuf)
		}
	}
}

// TestTablesGrow: they are small where little comes, and large where much does.
func TestTablesGrow(t *testing.T) {
	share := podCodec().WithInterning().newWatchSharer()
	decode := func(pod *corev1.Pod) {
		encoded, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got := &corev1.Pod{}
		if err := share.unmarshalShared(encoded, got); err != nil || !reflect.DeepEqual(got, pod) {
			t.Fatalf("got %+v, %v; want %+v", got, err, pod)
		}
	}
	if decode(wiretest.Pod(1)); len(share.parts.slots) != firstSlots || len(share.strings.strings) != firstSlots {
		t.Errorf("after one pod there are %d and %d slots", len(share.parts.slots), len(share.strings.strings))
	}
	for n := range 2000 {
		pod := wiretest.Pod(n)
		pod.UID = types.UID(fmt.Sprint(n))
		pod.Annotations["mine"] = fmt.Sprint(n)
		decode(pod)
	}
	if len(share.parts.slots) <= firstSlots || len(share.strings.strings) != stringSlots {
		t.Errorf("after 2000 pods there are %d and %d slots", len(share.parts.slots), len(share.strings.strings))
	}
}
