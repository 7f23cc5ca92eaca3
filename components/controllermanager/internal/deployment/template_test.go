package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func template(image string) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	t.Labels = map[string]string{"app": "web", "tier": "front"}
	t.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	return t
}

// TestHashIsStable pins the hash: another one would replace every pod of
// every deployment when the software is updated and sets are gone.
func TestHashIsStable(t *testing.T) {
	one := int32(1)
	for _, c := range []struct {
		image      string
		collisions *int32
		want       string
	}{
		{"nginx:1", nil, "68c77d4f85"}, {"nginx:2", nil, "bd8478cb"}, {"nginx:1", &one, "6cfd754c85"},
	} {
		got, err := hashOf(template(c.image), c.collisions)
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.image, got, err, c.want)
		}
	}
}

func TestTemplatesAreComparedWithoutTheHash(t *testing.T) {
	a, b := template("nginx:1"), template("nginx:1")
	b.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "abc"
	if !sameTemplate(a, b) {
		t.Error("the hash label makes a difference")
	}
	if b.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != "abc" {
		t.Error("comparing changed the template")
	}
	if sameTemplate(a, template("nginx:2")) {
		t.Error("another image makes no difference")
	}
}
