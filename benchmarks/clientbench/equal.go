package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/client"
)

// message is what the generated code of built-in types offers.
type message interface {
	client.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// measureEqualConfigMaps is what ConfigMaps kube-root-ca.crt take, of which each
// namespace has one.
func measureEqualConfigMaps(_ context.Context, t task) (result, error) {
	certificate := strings.Repeat("MIIDBTCCAe2gAwIBAgIIcyZTMsGuPqcwDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE\n", 17)
	return measureEqual(t, func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, func(i int) *corev1.ConfigMap {
		pod := workload.Pod(i, true)
		made := pod.CreationTimestamp
		return &corev1.ConfigMap{Data: map[string]string{"ca.crt": certificate}, ObjectMeta: metav1.ObjectMeta{
			Name: "kube-root-ca.crt", Namespace: fmt.Sprintf("team-%d", i), UID: pod.UID, CreationTimestamp: made,
			Annotations: map[string]string{"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver."},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate,
				APIVersion: "v1", Time: &made, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:ca.crt":{}},"f:metadata":{"f:annotations":{".":{},"f:kubernetes.io/description":{}}}}`)}},
		}}
	})
}

// measureEqualPods is what pods take that wait to be scheduled: those of a job are
// equal but for their names, UIDs and times.
func measureEqualPods(_ context.Context, t task) (result, error) {
	return measureEqual(t, func() *corev1.Pod { return &corev1.Pod{} }, func(i int) *corev1.Pod {
		pod, template := workload.Pod(i, true), workload.Pod(0, true)
		pod.Spec, pod.Labels, pod.OwnerReferences = template.Spec, template.Labels, template.OwnerReferences
		pod.Spec.NodeName = ""
		pod.ManagedFields = pod.ManagedFields[:1]
		pod.ManagedFields[0].FieldsV1 = template.ManagedFields[0].FieldsV1
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/1000 nodes are available: 1000 Insufficient cpu.", LastTransitionTime: pod.CreationTimestamp}}}
		return pod
	})
}

// measureEqual decodes objects from protobuf: ours as an informer does, client-go's as
// its serializer does, by the generated code.
func measureEqual[T message](t task, newT func() T, object func(i int) T) (result, error) {
	encoded := make([][]byte, t.Count)
	for i := range encoded {
		var err error
		if encoded[i], err = object(i).Marshal(); err != nil {
			return nil, err
		}
	}
	decode, ok := client.MessageDecoder(newT)
	if !ok {
		return nil, fmt.Errorf("%T cannot be decoded", newT())
	}
	if t.Library == clientGo {
		decode = func(data []byte) (T, error) {
			obj := newT()
			return obj, obj.Unmarshal(data)
		}
	}
	m, err := start(t.Profile)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(encoded))
	for i, data := range encoded {
		if all[i], err = decode(data); err != nil {
			return nil, err
		}
	}
	u, err := m.stop()
	if err != nil {
		return nil, err
	}
	n := float64(len(all))
	r := result{"live bytes per object": m.live() / n, "processor ns per object": float64(u.processor) / n, "allocations per object": u.allocs / n}
	runtime.KeepAlive(all)
	runtime.KeepAlive(encoded)
	return r, nil
}
