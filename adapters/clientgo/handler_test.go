package clientgo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgocache "k8s.io/client-go/tools/cache"
)

func TestMissedEndIsATombstone(t *testing.T) {
	var deleted any
	h := adapted[*corev1.ConfigMap]{clientgocache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { deleted = obj }}}
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	h.OnDelete(obj, false)
	if deleted != any(obj) {
		t.Errorf("got %v", deleted)
	}
	h.OnDelete(obj, true)
	if tombstone, ok := deleted.(clientgocache.DeletedFinalStateUnknown); !ok || tombstone.Key != "ns/a" || tombstone.Obj != any(obj) {
		t.Errorf("got %v", deleted)
	}
}
