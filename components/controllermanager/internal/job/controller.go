package job

import (
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

const workers = 8

var kind = batchv1.SchemeGroupVersion.WithKind("Job")

// byJob is the index of pods with the tracking finalizer by their job's
// namespace and name, to find those whose job is gone.
const byJob = "tracked-job"

// Controller is the Job controller.
type Controller struct {
	*controller.Controller
	selectors ownership.Selectors
	jobs      *informer.SharedInformer[*batchv1.Job]
	pods      *pods.Source
	api       client.Resource[*batchv1.Job]
	ttlAPI    client.Resource[*batchv1.Job] // for the deletion of finished jobs alone
	podAPI    client.Resource[*corev1.Pod]
	control   *pods.Control
	events    *events.Recorder
	written   *controller.WriteTracker
	now       func() time.Time
}

// New registers the controller with the factory's informers. ttl deletes the jobs whose
// time to live is over: Kubernetes has another controller for that, and other rights.
func New(cl, ttl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		jobs:    informer.For[*batchv1.Job](factory, informer.ListOptions{}),
		pods:    source,
		api:     client.For[*batchv1.Job](cl),
		ttlAPI:  client.For[*batchv1.Job](ttl),
		podAPI:  client.For[*corev1.Pod](cl),
		control: pods.NewControl(cl, recorder, kind),
		events:  recorder,
		written: controller.NewWriteTracker(),
		now:     time.Now,
	}
	err := source.Informer.AddIndexers(cache.Indexers[*corev1.Pod]{byJob: func(pod *corev1.Pod) ([]string, error) {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil || ref.Kind != kind.Kind || !tracked(pod) {
			return nil, nil
		}
		return []string{cache.ObjectKey(pod.Namespace, ref.Name)}, nil
	}})
	if err != nil {
		return nil, err
	}
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "job", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.jobs, informer.HandlerFuncs[*batchv1.Job]{
		Add: func(job *batchv1.Job, _ bool) { c.Add(controller.KeyOf(job)) },
		Update: func(old, job *batchv1.Job) {
			if old.UID != job.UID {
				c.forget(old)
			}
			c.Add(controller.KeyOf(job))
		},
		Delete: func(job *batchv1.Job, _ bool) {
			c.forget(job)
			c.Add(controller.KeyOf(job))
		},
	})
	orphan := ownership.OfferTo[*corev1.Pod](c.jobs, &c.selectors, func(job *batchv1.Job) *metav1.LabelSelector { return job.Spec.Selector }, c.Add)
	controller.Handle(c.Controller, source.Informer, c.control.Watch(c.Add, orphan))
	return c, nil
}

func (c *Controller) forget(job *batchv1.Job) {
	c.control.Expectations.Forget(controller.KeyOf(job))
	c.written.Forget(job.UID)
}
