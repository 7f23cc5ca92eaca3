package resource_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// noise fills objects at random.
type noise struct{ *rand.Rand }

var noisyStrings = []string{"", "a", "name", `q"\<&>/`, "ü€😀", "line\nbreak\ttab\r\b\f", "\x00\x1f\x7f", "\u2028\u2029", "\xff\xfe broken", "null"}

func (r noise) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		if r.IntN(3) > 0 {
			*p = metav1.NewTime(time.Unix(r.Int64N(4e9), r.Int64N(2e9)))
		}
		return
	case *metav1.MicroTime:
		if r.IntN(3) > 0 {
			*p = metav1.NewMicroTime(time.Unix(r.Int64N(4e9), r.Int64N(2e9)))
		}
		return
	case *quantity.Quantity:
		if *p = *quantity.NewMilliQuantity(r.Int64N(1e7), quantity.DecimalSI); r.IntN(2) == 0 {
			*p = quantity.MustParse([]string{"1", "0.5", "1e3", "100Mi", "12345678901234567890"}[r.IntN(5)])
		}
		return
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{intstr.FromInt32(80), intstr.FromString("<http>"), {}}[r.IntN(3)]
		return
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1([]string{`{}`, `{"f:a": {".": {}}}`, ` [1, "ü\u003c" ]`}[r.IntN(3)])
		return
	case *runtime.RawExtension:
		p.Raw = []byte([]string{`{"a": "<&>"}`, `null`, ` 1.50 `, `"x"`}[r.IntN(4)])
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(3) > 0 && depth < 9 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && r.IntN(2) == 0 {
				r.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 && depth < 9 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n))
			for i := range n - 1 {
				r.fill(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if n := r.IntN(4); n > 0 && depth < 9 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n - 1 {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				key.SetString(fmt.Sprint("k/", r.IntN(3), noisyStrings[r.IntN(7)]))
				r.fill(value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString(noisyStrings[r.IntN(len(noisyStrings))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int32:
		v.SetInt(int64(int32(r.Uint32())))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.Uint64()))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	}
}

// TestStructCodecsAreEncodingJSON holds the decoder and the encoder against the
// general ones, for random objects of every built-in kind.
func TestStructCodecsAreEncodingJSON(t *testing.T) {
	for _, res := range builtin.Table().All() {
		if res.Storage != nil {
			continue
		}
		t.Run(res.GroupResource().String(), func(t *testing.T) {
			r := noise{rand.New(rand.NewPCG(1, 2))}
			for range 40 {
				obj := res.New()
				r.fill(reflect.ValueOf(obj).Elem(), 0)
				compareWriters(t, res, obj)
				if body, err := res.MarshalGeneral(obj); err == nil {
					compareReaders(t, res, body)
				}
			}
		})
	}
}

func compareWriters(t *testing.T, res *resource.Resource, obj resource.Object) {
	t.Helper()
	encode := func(obj resource.Object) ([]byte, error) { return res.Encode(t.Context(), obj) }
	for _, pair := range []struct {
		fast, general func(resource.Object) ([]byte, error)
	}{
		{res.Marshal, res.MarshalGeneral}, {encode, res.EncodeGeneral},
	} {
		got, gotErr := pair.fast(obj)
		want, wantErr := pair.general(obj)
		if !bytes.Equal(got, want) || (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("written as\n%s (%v), want\n%s (%v)", got, gotErr, want, wantErr)
		}
	}
}

// compareReaders reports whether the struct codec decoded the body.
func compareReaders(t *testing.T, res *resource.Resource, body []byte) bool {
	t.Helper()
	got, want := res.New(), res.New()
	if !resource.DecodeStruct(body, got) {
		if !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("%s was refused, but left something behind", body)
		}
		return false
	}
	strict, err := resource.ReadStrictly(body, want)
	if err != nil || len(strict) > 0 {
		t.Fatalf("%s was read, but is refused: %v %v", body, err, strict)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s was read as\n%#v, want\n%#v", body, got, want)
	}
	return true
}

// TestWhichKindsHaveStructCodecs would show that an ordinary kind has lost its codec,
// which only costs time. Definitions have floating-point numbers.
func TestWhichKindsHaveStructCodecs(t *testing.T) {
	for _, res := range builtin.Table().All() {
		if want := res.Plural != "customresourcedefinitions"; res.HasStructCodec() != want {
			t.Errorf("%s has a struct codec: %v, want %v", res.GroupResource(), !want, want)
		}
	}
}

// unusual are changes of a document that the struct decoder must notice, or
// treat as the strict one does.
var unusual = []struct{ old, new string }{
	{`"name":"web"`, `"name":"web","name":"web"`},
	{`"name":"web"`, `"Name":"web"`},
	{`"name":"web"`, `"name":null`},
	{`"name":"web"`, `"name":7`},
	{`"name":"web"`, `"name":"\u0077eb"`},
	{`"name":"web"`, `"name":"a\ud800b"`},
	{`"name":"web"`, "\"name\":\"a\xffb\""},
	{`"name":"web"`, "\"name\":\"a\nb\""},
	{`"name":"web"`, `"na\u006de":"web"`},
	{`"containerPort":8080`, `"containerPort":8080.0`},
	{`"containerPort":8080`, `"containerPort":8e3`},
	{`"containerPort":8080`, `"containerPort":08080`},
	{`"containerPort":8080`, `"containerPort":-0`},
	{`"containerPort":8080`, `"containerPort":-`},
	{`"containerPort":8080`, `"containerPort":99999999999`},
	{`"containerPort":8080`, `"containerPort":"8080"`},
	{`"containerPort":8080`, `"containerPort":null`},
	{`"controller":true`, `"controller":trueX`},
	{`"controller":true`, `"controller":null`},
	{`"controller":true`, `"controller":1`},
	{`"app":"web"`, `"app":"web","app":"x"`},
	{`"app":"web"`, `"app":null`},
	{`"app":"web"`, `"app":{}`},
	{`"labels":{`, `"labels":null,"annotations":{`},
	{`"labels":{`, `"unknown":{`},
	{`"cpu":"100m"`, `"cpu":1.5`},
	{`"cpu":"100m"`, `"cpu":null`},
	{`"cpu":"100m"`, `"cpu":"many"`},
	{`"cpu":"100m"`, `"cpu":"\u0031"`},
	{`"creationTimestamp":"2026-11-21T04:00:00Z"`, `"creationTimestamp":null`},
	{`"creationTimestamp":"2026-11-21T04:00:00Z"`, `"creationTimestamp":"yesterday"`},
	{`"creationTimestamp":"2026-11-21T04:00:00Z"`, `"creationTimestamp":"2026-11-21T06:00:00.25+02:00"`},
	{`"path":"/healthz","port":8080`, `"path":"/healthz","port":"web"`},
	{`"path":"/healthz","port":8080`, `"path":"/healthz","port":{"a":1,"a":2}`},
	{`"path":"/healthz","port":8080`, `"path":"/healthz","port":8080}`},
	{`"tolerations":[`, `"tolerations":[,`},
	{`"tolerations":[`, `"tolerations":null,"hostAliases":[`},
	{`"tolerations":[{`, `"tolerations":[null,{`},
	{`"securityContext":{}`, `"securityContext":null`},
	{`"securityContext":{}`, `"securityContext":[]`},
	{`"securityContext":{}`, `"securityContext":{},`},
	{`"metadata":{`, ` "metadata" : {` + "\n\t\r"},
	{`"qosClass":"Burstable"}}`, `"qosClass":"Burstable"}} x`},
	{`"qosClass":"Burstable"}}`, `"qosClass":"Burstable"}}` + "\n"},
	{`"qosClass":"Burstable"}}`, `"qosClass":"Burstable"}`},
	{`"qosClass":"Burstable"}}`, `"qosClass":"Burstable`},
}

func TestUnusualBodies(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	if !compareReaders(t, pods, []byte(podJSON)) {
		t.Fatal("an ordinary pod is read the slow way")
	}
	for _, test := range unusual {
		body := strings.Replace(podJSON, test.old, test.new, 1)
		if body == podJSON {
			t.Errorf("the pod has no %s", test.old)
		}
		compareReaders(t, pods, []byte(body))
	}
	var deep strings.Builder
	for range 100 {
		deep.WriteString(`{"items":`)
	}
	compareReaders(t, pods, []byte(deep.String()))
}

// FuzzStructCodecs changes a pod and a secret in any way.
func FuzzStructCodecs(f *testing.F) {
	table := builtin.Table()
	kinds := []*resource.Resource{
		table.Lookup("", "v1", "pods"), table.Lookup("", "v1", "secrets"), table.Lookup("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
	}
	f.Add([]byte(podJSON))
	for _, test := range unusual {
		f.Add([]byte(strings.Replace(podJSON, test.old, test.new, 1)))
	}
	f.Add([]byte(`{"metadata":{"name":"s","managedFields":[{"fieldsV1":{"f:a":{}}}]},"data":{"a":"YQ==","b":null},"immutable":false}`))
	f.Add([]byte(`{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"not":{"default":{"a":[1.5]}}}}}}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, res := range kinds {
			if !compareReaders(t, res, body) {
				continue
			}
			obj := res.New()
			resource.DecodeStruct(body, obj)
			compareWriters(t, res, obj)
		}
	})
}

// TestReadObjectsDoNotShareTheBody changes the bytes after they were read.
func TestReadObjectsDoNotShareTheBody(t *testing.T) {
	body := []byte(podJSON)
	var pod corev1.Pod
	if !resource.DecodeStruct(body, &pod) {
		t.Fatal("not decoded by its struct codec")
	}
	before := pod.DeepCopy()
	for i := range body {
		body[i] = 'x'
	}
	if !reflect.DeepEqual(before, &pod) || pod.Name != "web-6d4b75cb6d-hznq7" {
		t.Error("the object changed with the body")
	}
}
