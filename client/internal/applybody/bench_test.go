package applybody

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/scheme"
)

func BenchmarkOf(b *testing.B) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: appsv1.DeploymentSpec{
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "a", Image: "one", Ports: []corev1.ContainerPort{{ContainerPort: 80}}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}}},
			{Name: "b", Image: "one", Ports: []corev1.ContainerPort{{ContainerPort: 81}}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}}},
		}}},
	}}
	for b.Loop() {
		if _, err := Of(scheme.Default, deployment, schema.GroupVersionKind{}); err != nil {
			b.Fatal(err)
		}
	}
}
