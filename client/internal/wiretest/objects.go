// Package wiretest holds what the client's tests send in a server's place: objects
// and frames of events.
package wiretest

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// PodList returns n pods in a list.
func PodList(n int) *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	list.ResourceVersion = "1000"
	for i := range n {
		list.Items = append(list.Items, *Pod(i))
	}
	return list
}

// Pod returns a pod that is about as large as pods are; i is in its names.
func Pod(i int) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = fmt.Sprintf("web-%06d", i), fmt.Sprintf("team-%02d", i%40)
	pod.UID, pod.ResourceVersion = "0a1b2c3d-0000-4000-8000-000000000001", fmt.Sprint(1000+i)
	pod.Labels = map[string]string{"app": "web", "pod-template-hash": "5d4f8c7b9", "tier": "front"}
	pod.Annotations = map[string]string{"example.com/checksum": strings.Repeat("ab", 32)}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9", UID: "0a1b2c3d-0000-4000-8000-000000000002"}}
	pod.Spec.NodeName, pod.Spec.RestartPolicy = fmt.Sprintf("node-%d", i%500), corev1.RestartPolicyAlways
	for c := range 2 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c%d", c), Image: "registry.example.com/team/web:v1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
			Env:          []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "REGION", Value: "eu-west-1"}},
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets", ReadOnly: true}},
		})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: fmt.Sprintf("c%d", c), Ready: true, Image: "registry.example.com/team/web:v1.2.3", ImageID: "sha256:" + strings.Repeat("0f", 32),
		})
	}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.%d.%d", i/250%250, i%250)
	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	return pod
}

// Bookmark returns the object of a bookmark event.
func Bookmark(version string, initialEnd bool) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.ResourceVersion = version
	if initialEnd {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return pod
}

// Frame puts an encoded object into an event, as servers do.
func Frame(t testing.TB, typ watch.EventType, object []byte, protobuf bool) []byte {
	t.Helper()
	if !protobuf {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", typ, object)
	}
	event, err := (&metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}
