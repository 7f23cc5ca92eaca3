package deepequal_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/levelwire/levelwire/client/internal/deepequal"
)

func TestSemantic(t *testing.T) {
	type own struct {
		List []string
		At   time.Time
	}
	at := time.Unix(1, 0)
	cpu := func(quantity string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}}}
	}
	for name, test := range map[string]struct {
		a, b any
		want bool
	}{
		"quantities":            {cpu("1"), cpu("1000m"), true},
		"other quantities":      {cpu("1"), cpu("2"), false},
		"an empty list":         {&corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{}}}, &corev1.Pod{}, true},
		"times of Go":           {&own{At: at}, &own{At: at}, true},
		"other times of Go":     {&own{At: at}, &own{At: at.Add(1)}, false},
		"with times, as Go has": {&own{List: []string{}, At: at}, &own{At: at}, false},
	} {
		if got := deepequal.Semantic(test.a, test.b); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
