package registry_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
)

// benchPod is about as large as pods are: 2 kB of JSON.
func benchPod(name string) *corev1.Pod {
	p := newPod(name, "node-1")
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f", UID: "4a1c0b1e-0000-4000-8000-000000000000"}}
	for i := range 2 {
		c := corev1.Container{
			Name: fmt.Sprintf("c%d", i), Image: "registry.example.com/team/image:v1.2.3", Args: []string{"--flag=value", "--other=value"},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			}},
		}
		for j := range 6 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", j), Value: "some value of a variable"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func BenchmarkCreate(b *testing.B) {
	f := newFixture(b)
	r := f.of(b, "pods")
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p := benchPod("p" + strconv.FormatInt(n.Add(1), 10))
			if _, err := r.Create(b.Context(), "default", p, registry.WriteOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUpdateStatus(b *testing.B) {
	f := newFixture(b)
	f.create(b, "pods", benchPod("p"))
	r := f.of(b, "pods")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		message := strconv.Itoa(i)
		if _, err := r.UpdateStatus(b.Context(), "default", "p", changing(func(p *corev1.Pod) { p.Status.Message = message }), registry.UpdateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPatch(b *testing.B) {
	for _, kind := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType} {
		b.Run(string(kind), func(b *testing.B) {
			f := newFixture(b)
			f.create(b, "pods", benchPod("p"))
			r := f.of(b, "pods")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				patch, err := patch.Parse(kind, fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := r.Patch(b.Context(), "default", "p", patch, registry.PatchOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
