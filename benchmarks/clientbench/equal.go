package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	goruntime "runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/client"
)

// watchOf opens client-go's watch of one kind.
type watchOf func(ctx context.Context, c kubernetes.Interface, opts metav1.ListOptions) (watch.Interface, error)

func configMaps(ctx context.Context, c kubernetes.Interface, opts metav1.ListOptions) (watch.Interface, error) {
	return c.CoreV1().ConfigMaps("").Watch(ctx, opts)
}

func allPods(ctx context.Context, c kubernetes.Interface, opts metav1.ListOptions) (watch.Interface, error) {
	return c.CoreV1().Pods("").Watch(ctx, opts)
}

// measureEqualConfigMaps is what ConfigMaps kube-root-ca.crt take, of which each
// namespace has one.
func measureEqualConfigMaps(ctx context.Context, t task) (result, error) {
	certificate := strings.Repeat("MIIDBTCCAe2gAwIBAgIIcyZTMsGuPqcwDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE\n", 17)
	return measureEqual(ctx, t, "ConfigMap", func(i int) *corev1.ConfigMap {
		pod := workload.Pod(i, true)
		made := pod.CreationTimestamp
		return &corev1.ConfigMap{Data: map[string]string{"ca.crt": certificate}, ObjectMeta: metav1.ObjectMeta{
			Name: "kube-root-ca.crt", Namespace: fmt.Sprintf("team-%d", i), UID: pod.UID, CreationTimestamp: made,
			Annotations: map[string]string{"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver."},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate,
				APIVersion: "v1", Time: &made, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:ca.crt":{}},"f:metadata":{"f:annotations":{".":{},"f:kubernetes.io/description":{}}}}`)}},
		}}
	}, configMaps)
}

// measureEqualPods is what pods take that wait to be scheduled: those of a job are
// equal but for their names, UIDs and times.
func measureEqualPods(ctx context.Context, t task) (result, error) {
	return measureEqual(ctx, t, "Pod", func(i int) *corev1.Pod {
		pod, template := workload.Pod(i, true), workload.Pod(0, true)
		pod.Spec, pod.Labels, pod.OwnerReferences = template.Spec, template.Labels, template.OwnerReferences
		pod.Spec.NodeName = ""
		pod.ManagedFields = pod.ManagedFields[:1]
		pod.ManagedFields[0].FieldsV1 = template.ManagedFields[0].FieldsV1
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/1000 nodes are available: 1000 Insufficient cpu.", LastTransitionTime: pod.CreationTimestamp}}}
		return pod
	}, allPods)
}

// measureEqual is what objects take that come in a watch and are kept, as those of
// an informer do. Whoever answers is in this process, and has encoded them before.
func measureEqual[T interface {
	client.Object
	message
}](ctx context.Context, t task, kind string, object func(i int) T, theirs watchOf) (result, error) {
	frames := make(recorded, t.Count)
	for i := range frames {
		var err error
		if frames[i], err = protobufEvent(watch.Added, kind, object(i)); err != nil {
			return nil, err
		}
	}
	all := make([]T, t.Count)
	m, err := start(t.Profile)
	if err != nil {
		return nil, err
	}
	if t.Library == clientGo {
		err = receiveTheirs(ctx, frames, theirs, all)
	} else {
		err = receiveOurs(ctx, frames, all)
	}
	if err != nil {
		return nil, err
	}
	u, err := m.stop()
	if err != nil {
		return nil, err
	}
	n := float64(len(all))
	r := result{"live bytes per object": m.live() / n, "processor ns per object": float64(u.processor) / n, "allocations per object": u.allocs / n}
	goruntime.KeepAlive(all)
	goruntime.KeepAlive(frames)
	return r, nil
}

// receiveOurs watches as an informer of Levelwire does.
func receiveOurs[T client.Object](ctx context.Context, frames recorded, all []T) error {
	c, err := client.New(&rest.Config{QPS: -1}, client.Options{
		ContentType:   client.Protobuf,
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return frames },
	})
	if err != nil {
		return err
	}
	w, err := client.For[T](c).Interning().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	for i := range all {
		event, err := w.Next()
		if err != nil {
			return err
		}
		all[i] = event.Object
	}
	return nil
}

// receiveTheirs watches as an informer of client-go does.
func receiveTheirs[T client.Object](ctx context.Context, frames recorded, watchAll watchOf, all []T) error {
	c, err := kubernetes.NewForConfig(&rest.Config{
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: protobufType, AcceptContentTypes: protobufType},
		Transport:     frames,
	})
	if err != nil {
		return err
	}
	w, err := watchAll(ctx, c, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	for i := range all {
		event, ok := <-w.ResultChan()
		if !ok {
			return fmt.Errorf("the watch ended after %d of %d objects", i, len(all))
		}
		if all[i], ok = event.Object.(T); !ok {
			return fmt.Errorf("the watch sent %T", event.Object)
		}
	}
	return nil
}

// recorded answers each request with its frames.
type recorded [][]byte

// RoundTrip implements http.RoundTripper.
func (r recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	readers := make([]io.Reader, len(r))
	for i, frame := range r {
		readers[i] = bytes.NewReader(frame)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: -1,
		Header: http.Header{"Content-Type": {protobufType + ";stream=watch"}},
		Body:   io.NopCloser(io.MultiReader(readers...)),
	}, nil
}
