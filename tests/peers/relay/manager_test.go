package relay

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// replicator makes the pods of ReplicaSets.
type replicator struct{ client.Client }

func (r *replicator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	set := &appsv1.ReplicaSet{}
	if err := r.Get(ctx, request.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for i := range *set.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprint(set.Name, "-", i)}}
		if err := controllerutil.SetControllerReference(set, pod, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(set.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	before := set.DeepCopy()
	set.Status.Replicas = int32(len(pods.Items))
	return ctrl.Result{}, r.Status().Patch(ctx, set, client.MergeFrom(before))
}

// TestManager: a manager of controller-runtime, with leader election, works through the relay
// on what others do at the server itself.
func TestManager(t *testing.T) {
	log.SetLogger(logr.Discard())
	relay, behind := start(t)
	manager, err := ctrl.NewManager(relay.Config(), ctrl.Options{
		Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "replicator", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&appsv1.ReplicaSet{}).Owns(&corev1.Pod{}).Complete(&replicator{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}()

	direct := kubernetes.NewForConfigOrDie(behind)
	sets, pods := direct.AppsV1().ReplicaSets("default"), direct.CoreV1().Pods("default")
	replicas := int32(3)
	set, err := sets.Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	changes, err := sets.Watch(deadline, metav1.ListOptions{ResourceVersion: set.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for set.Status.Replicas != replicas {
		event, ok := <-changes.ResultChan()
		if !ok {
			t.Fatalf("the watch has ended; the status has %d replicas", set.Status.Replicas)
		}
		if set, ok = event.Object.(*appsv1.ReplicaSet); !ok {
			t.Fatalf("%s %v", event.Type, event.Object)
		}
	}
	before, err := pods.Get(t.Context(), "web-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := pods.Watch(deadline, metav1.ListOptions{ResourceVersion: before.ResourceVersion, FieldSelector: "metadata.name=web-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Stop()
	if err := pods.Delete(t.Context(), "web-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for after := before; after.UID == before.UID; {
		event, ok := <-made.ResultChan()
		if !ok {
			t.Fatal("the watch has ended, and the pod was not made anew")
		}
		if after, ok = event.Object.(*corev1.Pod); !ok {
			t.Fatalf("%s %v", event.Type, event.Object)
		}
	}
}
