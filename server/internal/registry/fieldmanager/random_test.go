package fieldmanager

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler fills objects at random: sparsely, and so that two of them often agree.
type filler struct{ *rand.Rand }

func (r filler) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		if r.IntN(3) > 0 {
			*p = metav1.NewTime(time.Unix(int64(r.IntN(3)), int64(r.IntN(2))).UTC())
		}
		return
	case *metav1.MicroTime:
		if r.IntN(3) > 0 {
			*p = metav1.NewMicroTime(time.Unix(int64(r.IntN(3)), int64(r.IntN(2)*1000)).UTC())
		}
		return
	case *resource.Quantity:
		*p = resource.MustParse([]string{"1", "1000m", "1Gi", "1073741824", "2"}[r.IntN(5)])
		return
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{intstr.FromInt32(80), intstr.FromString("http"), intstr.FromString("80")}[r.IntN(3)]
		return
	case *metav1.FieldsV1:
		return
	}
	if typeInfoOfAny(v.Type()).kind == anyKind {
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
		r.fillSlice(v, depth)
	case reflect.Map:
		if n := r.IntN(4); n > 0 && depth < 9 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n - 1 {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				key.SetString(fmt.Sprint("k/", r.IntN(3), `"<`))
				r.fill(value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString([]string{"", "a", "b", `q"\<&>`, "ü"}[r.IntN(5)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(3)))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(3)))
	}
}

func (r filler) fillSlice(v reflect.Value, depth int) {
	n := r.IntN(4)
	if n == 0 || depth > 9 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, n))
	for range n - 1 {
		element := reflect.New(v.Type().Elem()).Elem()
		r.fill(element, depth+1)
		v.Set(reflect.Append(v, element))
	}
}

// typeInfoOfAny is typeInfoOf for types that are not structs, too.
func typeInfoOfAny(t reflect.Type) *typeInfo {
	b := infoBuilder{known: map[reflect.Type]*typeInfo{}}
	return b.of(t)
}
