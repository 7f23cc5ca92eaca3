package fieldmanager

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// fuzzedKinds have between them every kind of list and map, and one kind in two
// versions.
var fuzzedKinds = []struct {
	gvk  schema.GroupVersionKind
	make func() resource.Object
}{
	{corev1.SchemeGroupVersion.WithKind("Pod"), func() resource.Object { return &corev1.Pod{} }},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), func() resource.Object { return &appsv1.Deployment{} }},
	{corev1.SchemeGroupVersion.WithKind("Service"), func() resource.Object { return &corev1.Service{} }},
	{corev1.SchemeGroupVersion.WithKind("Node"), func() resource.Object { return &corev1.Node{} }},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), func() resource.Object { return &corev1.ConfigMap{} }},
	{batchv1.SchemeGroupVersion.WithKind("CronJob"), func() resource.Object { return &batchv1.CronJob{} }},
	{networkingv1.SchemeGroupVersion.WithKind("Ingress"), func() resource.Object { return &networkingv1.Ingress{} }},
	{autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), func() resource.Object { return &autoscalingv1.HorizontalPodAutoscaler{} }},
	{autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), func() resource.Object { return &autoscalingv2.HorizontalPodAutoscaler{} }},
}

// fillFuncs fill the types whose Go values do not all have a JSON form, with few
// different values, so that two objects often agree.
func fillFuncs() []any {
	pick := func(c randfill.Continue, texts ...string) string { return texts[c.Intn(len(texts))] }
	return []any{
		func(s *string, c randfill.Continue) { *s = pick(c, "", "a", "b", `q"\<&>`, "ü") },
		func(n *int32, c randfill.Continue) { *n = int32(c.Intn(3)) },
		func(n *int64, c randfill.Continue) { *n = int64(c.Intn(3)) },
		func(q *apiresource.Quantity, c randfill.Continue) {
			*q = apiresource.MustParse(pick(c, "1", "1000m", "1Gi", "1073741824"))
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(c.Intn(3)), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(int64(c.Intn(3)), int64(c.Intn(2)*1000)))
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = []intstr.IntOrString{intstr.FromInt32(80), intstr.FromString("http")}[c.Intn(2)]
		},
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":1}`) },
		func(*metav1.TypeMeta, randfill.Continue) {},
		func(*metav1.FieldsV1, randfill.Continue) {},
		func(list *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *list = nil },
	}
}

// FuzzUpdate writes two states of an object, made of arbitrary bytes, in the
// names of two managers. What the Go type says about their fields must be what
// structured-merge-diff says.
func FuzzUpdate(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for kind := range fuzzedKinds {
		for range 2 {
			var states [2][]byte
			for i := range states {
				states[i] = make([]byte, 400+r.IntN(1200))
				for j := range states[i] {
					states[i][j] = byte(r.Uint32())
				}
			}
			f.Add(uint8(kind), states[0], states[1], false)
			f.Add(uint8(kind), states[0], append([]byte(nil), states[0][:len(states[0])/2]...), kind%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, first, second []byte, status bool) {
		k := fuzzedKinds[int(kind)%len(fuzzedKinds)]
		state := func(data []byte) resource.Object {
			obj := k.make()
			randfill.NewFromGoFuzz(data).NilChance(.4).NumElements(1, 3).MaxDepth(9).Funcs(fillFuncs()...).Fill(obj)
			obj.GetObjectKind().SetGroupVersionKind(k.gvk)
			obj.SetManagedFields(nil)
			obj.SetName("n")
			obj.SetUID("u")
			if data, err := json.Marshal(obj); err != nil || json.Unmarshal(data, k.make()) != nil {
				t.Skip("no object of the API")
			}
			return readBack(t, obj)
		}
		live, next := state(first), state(second)
		m := managerOf(live, "")

		byLibrary := live.DeepCopyObject().(resource.Object)
		m.updateByLibrary(t.Context(), nil, byLibrary, "first")
		if m.createByType(live, "first") {
			compareEntries(t, "create", live, byLibrary)
		}
		live = byLibrary

		m.Now = m.Now.Add(time.Second)
		if status {
			m.Subresource = "status"
		}
		byLibrary = next.DeepCopyObject().(resource.Object)
		m.updateByLibrary(t.Context(), live, byLibrary, "second")
		if m.updateByType(live, next, "second") {
			compareEntries(t, "update", next, byLibrary)
		}
		if !reflect.DeepEqual(next.GetObjectKind(), byLibrary.GetObjectKind()) {
			t.Errorf("the kind became %v", next.GetObjectKind())
		}
	})
}
