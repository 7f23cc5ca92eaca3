package upstream_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

// TestMain keeps the libraries' chatter out of the tests' output.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

// start runs an etcd and a server on it until the test ends.
func start(t *testing.T, opts upstream.Options) *upstream.Server {
	t.Helper()
	etcd, err := upstream.StartEtcd(t.Context(), upstream.EtcdOptions{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	opts.Etcd = etcd.Endpoint()
	server, err := upstream.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("the upstream server's end: %v", err)
		}
	})
	return server
}

func TestPeerServesWhatItIsMeasuredBy(t *testing.T) {
	for name, opts := range map[string]upstream.Options{"JSON": {}, "protobuf": {Protobuf: true}} {
		t.Run(name, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(start(t, opts).Config())
			if err != nil {
				t.Fatal(err)
			}
			exercise(t, client)
		})
	}
}

func exercise(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	pods := client.CoreV1().Pods("default")
	onNode := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "n1").String()}
	events, err := pods.Watch(ctx, onNode)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod.Spec.NodeName = "n1"
	bound, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bound.Status.Phase = corev1.PodRunning
	if bound, err = pods.UpdateStatus(ctx, bound, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	old := bound.DeepCopy()
	old.ResourceVersion = "1"
	if _, err := pods.Update(ctx, old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v, want a conflict", err)
	}
	if err := pods.Delete(ctx, bound.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ending, err := pods.Get(ctx, bound.Name, metav1.GetOptions{})
	if err != nil || ending.DeletionTimestamp == nil {
		t.Fatalf("a bound pod after its deletion: %v, %v; want one that is ending", ending, err)
	}
	now := int64(0)
	if err := pods.Delete(ctx, bound.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}

	// Created, running, ending, ending at once, gone.
	want := []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Modified, watch.Deleted}
	for i, want := range want {
		event := <-events.ResultChan()
		if got, ok := event.Object.(*corev1.Pod); !ok || event.Type != want || got.Name != bound.Name {
			t.Fatalf("event %d is %s of %v, want %s of %s", i, event.Type, event.Object, want, bound.Name)
		}
	}
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d pods (%v), want the one without a node", len(list.Items), err)
	}
}
