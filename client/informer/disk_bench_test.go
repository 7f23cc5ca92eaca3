package informer

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/reflector"
)

// benchDisk is the file of an informer, and a state of some pods.
func benchDisk(b *testing.B, pods int) (*disk[*corev1.Pod], snapshot[*corev1.Pod]) {
	b.Helper()
	i := New[*corev1.Pod]("pods", newScript(), reflector.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := i.KeepOnDisk(DiskOptions{Directory: b.TempDir(), Identify: func(context.Context) (string, error) { return "one", nil }}); err != nil {
		b.Fatal(err)
	}
	s := snapshot[*corev1.Pod]{version: "17", asOf: time.Unix(1, 0)}
	for n := range pods {
		s.objects = append(s.objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "namespace", Name: "pod-" + strconv.Itoa(n), UID: types.UID(strconv.Itoa(n)),
				ResourceVersion: strconv.Itoa(n), Labels: map[string]string{"app": "web", "tier": "front"}},
			Spec: corev1.PodSpec{NodeName: "node-" + strconv.Itoa(n%100), Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/web:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}},
		})
	}
	return i.disk, s
}

const diskPods = 20_000

func BenchmarkSave(b *testing.B) {
	d, s := benchDisk(b, diskPods)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.write(s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*diskPods), "ns/object")
}

func BenchmarkRestore(b *testing.B) {
	d, s := benchDisk(b, diskPods)
	if _, err := d.write(s); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := d.open()
		if r == nil {
			b.Fatal("refused")
		}
		objects, err := d.load(b.Context(), r)
		if err != nil || len(objects) != diskPods {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*diskPods), "ns/object")
}
