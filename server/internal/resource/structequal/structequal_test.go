package structequal_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/server/internal/resource/structequal"
)

// filler fills values at random, densely enough that every field has a value in some.
type filler struct{ *rand.Rand }

func (r filler) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.NewTime(time.Unix(int64(r.IntN(3)), 0))
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.Unix(int64(r.IntN(3)), 0))
		return
	case *resource.Quantity:
		*p = resource.MustParse([]string{"1", "1000m", "1Gi", "1073741824", "0.5"}[r.IntN(5)])
		return
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{intstr.FromInt32(80), intstr.FromString("http")}[r.IntN(2)]
		return
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1(`{"f:a":{}}`)
		return
	case *runtime.RawExtension:
		p.Raw = []byte(`{}`)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 9 && r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && r.IntN(3) > 0 {
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
				key.SetString(fmt.Sprint("k", r.IntN(3)))
				r.fill(value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString([]string{"", "a", "b"}[r.IntN(3)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(3)))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(3)))
	case reflect.Float64:
		v.SetFloat(float64(r.IntN(3)))
	}
}

// change fills one part of a value again, at a random depth.
func (r filler) change(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil() && r.IntN(8) > 0:
		r.change(v.Elem())
	case v.Kind() == reflect.Slice && v.Len() > 0 && r.IntN(8) > 0:
		r.change(v.Index(r.IntN(v.Len())))
	case v.Kind() == reflect.Struct && v.NumField() > 0:
		if i := r.IntN(v.NumField()); v.Type().Field(i).IsExported() {
			r.change(v.Field(i))
		}
	default:
		v.SetZero()
		r.fill(v, 5)
	}
}

// TestIdenticalIsEqual compares objects of every kind with copies in which one part was
// filled again: those that are identical must be equal for the library, and have the
// same JSON form. An object and its copy must be identical, or nothing is gained.
func TestIdenticalIsEqual(t *testing.T) {
	r := filler{rand.New(rand.NewPCG(1, 2))}
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		if _, ok := reflect.New(goType).Interface().(metav1.Object); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		for range 60 {
			v := reflect.New(goType)
			r.fill(v.Elem(), 0)
			obj := v.Interface().(runtime.Object)
			other := obj.DeepCopyObject()
			w := reflect.ValueOf(other)
			r.change(w.Elem())
			if structequal.Identical(v.Elem(), w.Elem()) && (!equality.Semantic.DeepEqual(obj, other) || encode(t, obj) != encode(t, other)) {
				t.Fatalf("%s: identical, but not equal:\n%s\n%s", gvk, encode(t, obj), encode(t, other))
			}
			if got, want := structequal.SemanticValues(v.Elem(), w.Elem()), equality.Semantic.DeepEqual(obj, other); got != want {
				t.Fatalf("%s: SemanticValues says %v:\n%s\n%s", gvk, got, encode(t, obj), encode(t, other))
			}
		}
	}
}

func encode(t *testing.T, obj runtime.Object) string {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSameJSONIsIdentical: an object that was decoded twice is identical, or
// nothing is gained. Only its managedFields may be unknown.
func TestSameJSONIsIdentical(t *testing.T) {
	r := filler{rand.New(rand.NewPCG(3, 4))}
	for range 200 {
		var pod, once, again corev1.Pod
		r.fill(reflect.ValueOf(&pod).Elem(), 0)
		data := []byte(encode(t, &pod))
		for _, into := range []*corev1.Pod{&once, &again} {
			if err := json.Unmarshal(data, into); err != nil {
				t.Fatal(err)
			}
		}
		if !structequal.Identical(reflect.ValueOf(&once.Spec).Elem(), reflect.ValueOf(&again.Spec).Elem()) {
			t.Fatalf("not identical to itself: %s", data)
		}
		if !structequal.Identical(reflect.ValueOf(&once.Status).Elem(), reflect.ValueOf(&again.Status).Elem()) {
			t.Fatalf("not identical to itself: %s", data)
		}
	}
}

// TestIdenticalTellsFormsApart: what the library takes for equal and JSON does not.
func TestIdenticalTellsFormsApart(t *testing.T) {
	for _, pair := range [][2]corev1.PodSpec{
		{{NodeSelector: map[string]string{}}, {}},
		{{Containers: []corev1.Container{}}, {}},
		{{Overhead: corev1.ResourceList{"cpu": resource.MustParse("1Gi")}}, {Overhead: corev1.ResourceList{"cpu": resource.MustParse("1073741824")}}},
	} {
		if structequal.Identical(reflect.ValueOf(&pair[0]).Elem(), reflect.ValueOf(&pair[1]).Elem()) {
			t.Errorf("identical: %v and %v", pair[0], pair[1])
		}
		if !structequal.Semantic(&pair[0], &pair[1]) {
			t.Errorf("not equal: %v and %v", pair[0], pair[1])
		}
	}
}

func BenchmarkIdentical(b *testing.B) {
	r := filler{rand.New(rand.NewPCG(7, 8))}
	var pod corev1.Pod
	r.fill(reflect.ValueOf(&pod.Spec).Elem(), 0)
	other := pod.DeepCopy()
	for _, way := range []struct {
		name string
		same func() bool
	}{
		{"identical", func() bool { return structequal.Semantic(&pod.Spec, &other.Spec) }},
		{"library", func() bool { return equality.Semantic.DeepEqual(&pod.Spec, &other.Spec) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !way.same() {
					b.Fatal("not the same")
				}
			}
		})
	}
}
