package clientgo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgocache "k8s.io/client-go/tools/cache"
)

func TestMissedEndIsATombstone(t *testing.T) {
	var told any
	h := adapted[*corev1.ConfigMap]{clientgocache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { told = obj }}}
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	h.OnDelete(obj, false)
	if told != any(obj) {
		t.Errorf("told of %v", told)
	}
	h.OnDelete(obj, true)
	if tombstone, ok := told.(clientgocache.DeletedFinalStateUnknown); !ok || tombstone.Key != "ns/a" || tombstone.Obj != any(obj) {
		t.Errorf("told of %v", told)
	}
}
