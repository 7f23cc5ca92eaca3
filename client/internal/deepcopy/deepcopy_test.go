package deepcopy_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/internal/deepcopy"
)

// lamp embeds an API type, and with it a DeepCopyObject that is not its own.
type lamp struct {
	corev1.ConfigMap
	Color string `json:"color"`
}

func TestOf(t *testing.T) {
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}}}
	if got := deepcopy.Of(plain); !reflect.DeepEqual(got, plain) || got == plain {
		t.Errorf("got %v", got)
	}
	embedding := &lamp{ConfigMap: *plain, Color: "red"}
	got := deepcopy.Of(embedding)
	if !reflect.DeepEqual(got, embedding) {
		t.Errorf("got %v", got)
	}
	got.Labels["x"] = "z"
	if embedding.Labels["x"] != "y" {
		t.Error("the copy shares its labels")
	}
}
