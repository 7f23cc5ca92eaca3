package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/net/http2/hpack"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

const (
	namespace = "bench"
	// prepareTimeout is how long the components may take to be at work.
	prepareTimeout = 5 * time.Minute
)

// workload is nodes, and a Deployment whose pods come and go.
type workload struct {
	plane       *controlPlane
	client      kubernetes.Interface
	nodes, pods int
}

func newWorkload(c *controlPlane, nodes, pods int) (*workload, error) {
	access := c.server.Access
	config := &rest.Config{Host: access.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: access.CA, CertData: access.Cert, KeyData: access.Key}}
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	return &workload{c, client, nodes, pods}, err
}

func post(path, body string) load.Request {
	return load.Request{Method: http.MethodPost, Path: path, Body: []byte(body), Header: []hpack.HeaderField{{Name: "content-type", Value: "application/json"}}}
}

// prepare makes namespaces and nodes, and waits until the components are at work: a pod has come and gone.
func (w *workload) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, fmt.Errorf("the components were not at work after %v", prepareTimeout))
	defer cancel()
	for _, name := range []string{namespace, probeNamespace} {
		if _, err := w.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for i := range w.nodes {
		if _, err := w.client.CoreV1().Nodes().Create(ctx, newNode(i, w.podsOfNode()), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := w.awaitComponents(ctx); err != nil {
		return err
	}
	_, err := (&workload{w.plane, w.client, w.nodes, 1}).comeAndGo(ctx, prepareTimeout)
	return err
}

// podsOfNode is how many a node has room for: twice its share, and as many as a node has by default at least.
func (w *workload) podsOfNode() int { return max(110, 2*w.pods/w.nodes) }

// newNode is one that is ready, and has room for pods.
func newNode(i, pods int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()},
		}},
	}
}

// awaitComponents waits until the namespace has its service account, without which no pod is made, and until no node has the taint
// any more with which nodes begin.
func (w *workload) awaitComponents(ctx context.Context) error {
	for {
		_, noAccount := w.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		tainted := 0
		for i := range nodes.Items {
			if len(nodes.Items[i].Spec.Taints) > 0 {
				tainted++
			}
		}
		if noAccount == nil && tainted == 0 {
			return nil
		}
		if err := w.plane.Failure(); err != nil {
			return err
		}
		if err := tested.Pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("%w; tainted nodes: %d; the service account: %v", err, tainted, noAccount)
		}
	}
}

// deployment is that of so many pods.
func deployment(pods int) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(pods)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: requests}}}},
			},
		},
	}
}

// comeAndGo creates the Deployment, waits until all pods are bound, deletes it, and waits until all pods are gone. It returns what
// both took.
func (w *workload) comeAndGo(ctx context.Context, limit time.Duration) (phases [2]phase, err error) {
	f, err := follow(ctx, w.client, w.pods)
	if err != nil {
		return phases, err
	}
	defer f.stop()
	var moments [3]used
	deployments := w.client.AppsV1().Deployments(namespace)
	for i, step := range []struct {
		do   func() error
		done <-chan struct{}
	}{
		{func() error {
			_, err := deployments.Create(ctx, deployment(w.pods), metav1.CreateOptions{})
			return err
		}, f.allBound},
		{func() error {
			return deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		}, f.allGone},
	} {
		if moments[i], err = w.plane.sample(); err != nil {
			return phases, err
		}
		if err := step.do(); err != nil {
			return phases, err
		}
		if err := f.await(ctx, step.done, w.plane.Failure, limit); err != nil {
			return phases, err
		}
	}
	if moments[2], err = w.plane.sample(); err != nil {
		return phases, err
	}
	return [2]phase{moments[0].until(moments[1]), moments[1].until(moments[2])}, nil
}
