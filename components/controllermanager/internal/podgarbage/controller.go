package podgarbage

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

const workers = 2

// removedWithin is how long a server has to remove a pod that it has marked as deleted. It takes
// milliseconds, unless the server is killed between the two writes.
const removedWithin = 5 * time.Second

// Controller removes pods without a node that stay although they are deleted: no kubelet does.
type Controller struct {
	*controller.Controller
	pods *pods.Source
	api  client.Resource[*corev1.Pod]
	log  *slog.Logger
}

// New registers the controller with the source's informer.
func New(cl *client.Client, source *pods.Source, log *slog.Logger) (*Controller, error) {
	c := &Controller{pods: source, api: client.For[*corev1.Pod](cl), log: log}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "podgarbage", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, source.Informer, informer.HandlerFuncs[*corev1.Pod]{
		Add:    func(pod *corev1.Pod, _ bool) { c.changed(pod) },
		Update: func(_, pod *corev1.Pod) { c.changed(pod) },
	})
	return c, nil
}

func (c *Controller) changed(pod *corev1.Pod) {
	if isLeft(pod) {
		c.AddAfter(controller.KeyOf(pod), removedWithin)
	}
}

// isLeft reports whether a pod is deleted and waits for nothing: neither for a kubelet nor for
// those who have put finalizers on it.
func isLeft(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName == "" && len(pod.Finalizers) == 0
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	pod, ok := c.pods.Informer.Lister().Get(key.Namespace, key.Name)
	if !ok || !isLeft(pod) {
		return controller.Result{}, nil
	}
	err := c.api.Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is gone, or another has its name
		return controller.Result{}, nil
	case err != nil:
		return controller.Result{}, fmt.Errorf("remove pod %s: %w", key, err)
	}
	c.log.Info("removed a pod without a node that was deleted and had stayed", "pod", key)
	return controller.Result{}, nil
}
