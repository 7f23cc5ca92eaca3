package job

import (
	"context"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/rest"
	"github.com/levelwire/levelwire/controller/pods"
	"github.com/levelwire/levelwire/controller/reconcile"
)

const workers = 8

var kind = batchv1.SchemeGroupVersion.WithKind("Job")

// byJob is the index of pods with the tracking finalizer by their job's
// namespace and name, to find those whose job is gone.
const byJob = "tracked-job"

// Controller is the Job controller.
type Controller struct {
	loop     *reconcile.Loop
	jobs     *informer.SharedInformer[*batchv1.Job]
	pods     *pods.Source
	api      rest.Resource[*batchv1.Job]
	podAPI   rest.Resource[*corev1.Pod]
	control  *pods.Control
	events   *events.Recorder
	written  *reconcile.Versions
	informed []reconcile.Source
	now      func() time.Time
}

// New registers the controller with the factory's informers.
func New(client *rest.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		jobs:    informer.For[*batchv1.Job](factory, informer.ListOptions{}),
		pods:    source,
		api:     rest.For[*batchv1.Job](client),
		podAPI:  rest.For[*corev1.Pod](client),
		control: pods.NewControl(client, recorder, kind),
		events:  recorder,
		written: reconcile.NewVersions(),
		now:     time.Now,
	}
	c.loop = reconcile.NewLoop("job", workers, log, c.reconcile)
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
	jobs, err := c.jobs.AddHandler(informer.HandlerFuncs[*batchv1.Job]{
		Add: func(job *batchv1.Job, _ bool) { c.loop.Add(reconcile.KeyOf(job)) },
		Update: func(old, job *batchv1.Job) {
			if old.UID != job.UID {
				c.forget(old)
			}
			c.loop.Add(reconcile.KeyOf(job))
		},
		Delete: func(job *batchv1.Job, _ bool) {
			c.forget(job)
			c.loop.Add(reconcile.KeyOf(job))
		},
	}, informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	podHandler, err := source.Informer.AddHandler(c.control.Watch(c.loop.Add, c.offerOrphan), informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	c.informed = []reconcile.Source{jobs, podHandler}
	return c, nil
}

// Run reconciles until ctx ends, once the caches are filled. It blocks.
func (c *Controller) Run(ctx context.Context) error { return c.loop.RunAfter(ctx, c.informed...) }

func (c *Controller) forget(job *batchv1.Job) {
	c.control.Expectations.Forget(reconcile.KeyOf(job))
	c.written.Forget(job.UID)
}

func (c *Controller) offerOrphan(pod *corev1.Pod) {
	for _, job := range c.jobs.Lister().List(pod.Namespace, nil) {
		selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			c.loop.Add(reconcile.KeyOf(job))
		}
	}
}
