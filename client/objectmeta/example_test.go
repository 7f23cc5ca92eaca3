package objectmeta_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/objectmeta"
)

func ExampleSetControllerReference() {
	owner := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "7b0a"}} // as the server returned it
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "default"}}
	err := objectmeta.SetControllerReference(owner, pod, nil)
	fmt.Println(pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name, err)
	// Output: apps/v1 ReplicaSet web <nil>
}

func ExampleAddFinalizer() {
	pod := &corev1.Pod{}
	if objectmeta.AddFinalizer(pod, "example.com/disk") {
		fmt.Println("write it:", pod.Finalizers)
	}
	// Output: write it: [example.com/disk]
}
