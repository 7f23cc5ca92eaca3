package objectmeta_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/objectmeta"
	"github.com/levelwire/levelwire/client/scheme"
)

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "default"}}
}

func set(name string, uid types.UID) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: uid}}
}

func TestFinalizersAreNotChangedInPlace(t *testing.T) {
	shared := make([]string, 1, 4)
	shared[0] = "example.com/a"
	obj := pod()
	obj.Finalizers = shared
	if !objectmeta.AddFinalizer(obj, "example.com/b") || objectmeta.AddFinalizer(obj, "example.com/b") || !objectmeta.HasFinalizer(obj, "example.com/b") {
		t.Errorf("got %v", obj.Finalizers)
	}
	if !objectmeta.RemoveFinalizer(obj, "example.com/a") || objectmeta.RemoveFinalizer(obj, "example.com/a") || len(obj.Finalizers) != 1 {
		t.Errorf("got %v", obj.Finalizers)
	}
	if shared[0] != "example.com/a" || shared[:2][1] != "" {
		t.Errorf("the shared slice was changed: %v", shared[:2])
	}
	if objectmeta.IsBeingDeleted(obj) {
		t.Error("nothing was deleted")
	}
}

func TestControllerReference(t *testing.T) {
	obj, owner := pod(), set("web", "1")
	for range 2 { // again, after the owner has moved to another version for instance
		if err := objectmeta.SetControllerReference(owner, obj, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(obj.OwnerReferences) != 1 {
		t.Fatalf("got %v", obj.OwnerReferences)
	}
	ref := obj.OwnerReferences[0]
	if ref.APIVersion != "apps/v1" || ref.Kind != "ReplicaSet" || ref.Name != "web" || ref.UID != "1" || !*ref.Controller || !*ref.BlockOwnerDeletion {
		t.Errorf("got %+v", ref)
	}
	other := set("other", "2")
	if err := objectmeta.SetControllerReference(other, obj, nil); !errors.Is(err, objectmeta.ErrAlreadyControlled) || !strings.Contains(err.Error(), `ReplicaSet "web"`) {
		t.Errorf("a second controller: %v", err)
	}
	if err := objectmeta.SetOwnerReference(other, obj, nil); err != nil || !objectmeta.HasOwnerReference(obj, other) || objectmeta.IsControlledBy(obj, other) {
		t.Errorf("a second owner: %v, %v", obj.OwnerReferences, err)
	}
	if err := objectmeta.SetOwnerReference(owner, obj, nil); err != nil || !objectmeta.IsControlledBy(obj, owner) {
		t.Errorf("the controller as an owner: %v, %v", obj.OwnerReferences, err)
	}
	if !objectmeta.RemoveOwnerReference(obj, owner) || objectmeta.RemoveOwnerReference(obj, owner) || len(obj.OwnerReferences) != 1 {
		t.Errorf("got %v", obj.OwnerReferences)
	}
}

func TestOwnersThatTheGarbageCollectorWouldNotFind(t *testing.T) {
	custom := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "uid": "1"}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}}
	elsewhere := set("web", "1")
	elsewhere.Namespace = "other"
	for want, err := range map[string]error{
		"no UID":                   objectmeta.SetOwnerReference(set("web", ""), pod(), nil),
		"must be in its namespace": objectmeta.SetOwnerReference(elsewhere, pod(), nil),
		"set its namespace":        objectmeta.SetControllerReference(elsewhere, node, nil),
		"no apiVersion and kind":   objectmeta.SetControllerReference(custom, pod(), scheme.New()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	if err := objectmeta.SetControllerReference(node, pod(), nil); err != nil {
		t.Errorf("a cluster-scoped owner: %v", err)
	}
}
