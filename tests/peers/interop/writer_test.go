package interop

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A writer changes pods of one namespace, with client-go's typed client. Each
// write carries a step, by which handlers' notes name the state.
type writer struct {
	ctx  context.Context
	t    *testing.T
	pods typedcorev1.PodInterface
}

func newWriter(ctx context.Context, t *testing.T, client kubernetes.Interface, namespace string) *writer {
	return &writer{ctx: ctx, t: t, pods: client.CoreV1().Pods(namespace)}
}

func (w *writer) create(name, step, app string) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{"step": step}, Labels: map[string]string{"app": app},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/app:1"}}
	if _, err := w.pods.Create(w.ctx, pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// update writes the next step and, unless empty, another app label.
func (w *writer) update(name, step, app string) {
	w.t.Helper()
	pod := w.get(name)
	pod.Annotations["step"] = step
	if app != "" {
		pod.Labels["app"] = app
	}
	if _, err := w.pods.Update(w.ctx, pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) phase(name string, phase corev1.PodPhase) {
	w.t.Helper()
	pod := w.get(name)
	pod.Status.Phase = phase
	if _, err := w.pods.UpdateStatus(w.ctx, pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// delete deletes a pod that no node has: the servers first mark it as ending
// and then remove it.
func (w *writer) delete(name string) {
	w.t.Helper()
	if err := w.pods.Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) get(name string) *corev1.Pod {
	w.t.Helper()
	pod, err := w.pods.Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// visible waits until the server's cache shows what has been written: a list
// at version 0, as an informer's first, may be of any state before that.
func (w *writer) visible() {
	w.t.Helper()
	if _, err := w.pods.List(w.ctx, metav1.ListOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// sameAsServer wants an informer's copy to be what the server lists, in full.
func (w *writer) sameAsServer(s subject, opts metav1.ListOptions) {
	w.t.Helper()
	list, err := w.pods.List(w.ctx, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	want := []*corev1.Pod{}
	for i := range list.Items {
		want = append(want, &list.Items[i])
	}
	want = sortPods(want)
	got := s.pods()
	if len(got) != len(want) {
		w.t.Fatalf("the copy has %v, the server %v", namesOf(got), namesOf(want))
	}
	for i := range want {
		// Items of lists and objects of events differ in whether they name
		// their kind.
		have := got[i].DeepCopy()
		have.TypeMeta, want[i].TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
		if !equality.Semantic.DeepEqual(have, want[i]) {
			w.t.Errorf("the copy of %s is\n%+v\nthe server has\n%+v", want[i].Name, have, want[i])
		}
	}
}
