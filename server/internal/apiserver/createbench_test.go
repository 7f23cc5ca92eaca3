package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ordinaryPodSpec is a spec as large as those of deployed workloads are.
func ordinaryPodSpec() corev1.PodSpec {
	spec := corev1.PodSpec{ServiceAccountName: "web", Volumes: []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}},
	}}
	for i := range 2 {
		c := corev1.Container{
			Name: fmt.Sprintf("c%d", i), Image: "registry.example.com/team/image:v1.2.3", Args: []string{"--flag=value", "--other=value"},
			Ports:        []corev1.ContainerPort{{Name: fmt.Sprintf("http%d", i), ContainerPort: int32(8080 + i)}},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web", ReadOnly: true}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(int32(8080 + i))},
			}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: apiresource.MustParse("100m"), corev1.ResourceMemory: apiresource.MustParse("128Mi"),
			}},
		}
		for j := range 6 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", j), Value: "some value of a variable"})
		}
		spec.Containers = append(spec.Containers, c)
	}
	return spec
}

// BenchmarkCreate creates ordinary objects through the whole HTTP handler,
// over a store in memory and without a connection. Beside the time of a create
// it reports its processor time, the feed's and the cache's included.
func BenchmarkCreate(b *testing.B) {
	labels := map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-1", "pod-template-hash": "5d4f8c7b9d"}
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f", UID: "4a1c0b1e-0000-4000-8000-000000000000"}}
	three := int32(3)
	for path, obj := range map[string]any{
		"/api/v1/namespaces/default/pods": &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "NAME", Labels: labels, OwnerReferences: owner},
			Spec:       ordinaryPodSpec(),
		},
		"/apis/apps/v1/namespaces/default/deployments": &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "NAME", Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: ordinaryPodSpec()},
			},
		},
	} {
		b.Run(path[strings.LastIndexByte(path, '/')+1:], func(b *testing.B) {
			c := newCluster(b, func(s *setup) { s.config.HTTP2Server = HTTP2Levelwire })
			body, err := json.Marshal(obj)
			must(b, err)
			head, tail, _ := strings.Cut(string(body), "NAME")
			create := func(i int) {
				r, err := http.NewRequest(http.MethodPost, path, strings.NewReader(fmt.Sprintf("%so-%08d%s", head, i, tail)))
				must(b, err)
				r.Header.Set("Authorization", "Bearer "+testToken)
				r.Header.Set("Content-Type", "application/json")
				w := &statusWriter{discardWriter: discardWriter{header: http.Header{}}}
				if c.server.ServeHTTP(w, r); w.status != http.StatusCreated {
					b.Fatalf("status %d", w.status)
				}
			}
			create(0)
			b.ReportAllocs()
			before := processorTime(b)
			b.ResetTimer()
			for i := 1; i <= b.N; i++ {
				create(i)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	discardWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) { w.status = status }

// processorTime is how long all threads of the process have run.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
