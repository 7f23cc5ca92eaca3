package builtin_test

import (
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// fillFuncs fill the types whose Go values do not all have a JSON form.
func fillFuncs() []any {
	return []any{
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("v%d", c.Intn(1000)) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(int64(c.Intn(1000)), resource.DecimalSI)
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Time{Time: time.Unix(int64(c.Intn(1<<30)), 0)} },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.MicroTime{Time: time.Unix(int64(c.Intn(1<<30)), int64(c.Intn(1000))*1000)}
		},
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(int32(c.Intn(100))) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":1}`) },
		func(v *apiextensionsv1.JSON, c randfill.Continue) { v.Raw = []byte(`{"a":1}`) },
		func(v *apiextensionsv1.JSONSchemaPropsOrBool, c randfill.Continue) { v.Allows = true },
		func(v *apiextensionsv1.JSONSchemaPropsOrArray, c randfill.Continue) {
			v.Schema = &apiextensionsv1.JSONSchemaProps{Type: "string"}
		},
		func(b *[]byte, c randfill.Continue) { *b = []byte{byte(c.Intn(256))} },
		func(m *metav1.TypeMeta, c randfill.Continue) {}, // not in protobuf, where it is nested
		func(f *metav1.FieldsV1, c randfill.Continue) { *f = metav1.FieldsV1{} },
	}
}
