package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
)

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	job, ok := c.jobs.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.selectors.Forget(key)
	}
	if err := c.freeStrays(ctx, key, job, ok); err != nil || !ok {
		return controller.Result{}, err
	}
	if job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName {
		return controller.Result{}, nil // another controller's
	}
	if err := c.written.Current(ctx, job); err != nil {
		return controller.Result{}, err
	}
	if finished(&job.Status) {
		again, err := c.expire(ctx, job)
		return controller.After(again), err
	}
	selector, err := c.selectors.Of(job, job.Spec.Selector)
	if err != nil || selector.Empty() {
		return controller.Result{}, nil // validation refuses such jobs; one that slipped through owns nothing
	}
	settled, recheck := c.control.Settled(ctx, key)
	owned, err := c.control.Claim(ctx, job, selector, c.pods, ownership.StillThere(c.api, job))
	if err != nil {
		return controller.Result{}, err
	}
	again, err := c.advance(ctx, job, owned, settled)
	return controller.After(controller.Sooner(again, recheck)), err
}

// advance makes one step: the books, the verdict, then pods, in that order,
// because what is done to pods relies on what the status says.
func (c *Controller) advance(ctx context.Context, job *batchv1.Job, owned []*corev1.Pod, settled bool) (time.Duration, error) {
	now := c.now()
	status := job.Status.DeepCopy()
	books := settle(job, owned, status)
	start(job, status, now)
	again := judge(job, status, books, now)
	conclude(status, books, now)
	if err := c.writeStatus(ctx, job, status); err != nil {
		return 0, err
	}
	failed := c.letGo(ctx, books.free)
	if job.DeletionTimestamp != nil || !settled {
		return again, failed
	}
	wait, err := c.scale(ctx, job, status, books, now)
	return controller.Sooner(again, wait), errors.Join(failed, err)
}

func (c *Controller) writeStatus(ctx context.Context, job *batchv1.Job, status *batchv1.JobStatus) error {
	if equality.Semantic.DeepEqual(*status, job.Status) {
		return nil
	}
	update := job.DeepCopy()
	update.Status = *status
	written, err := c.api.Namespace(job.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write status of %s: %w", describe(job), err)
	}
	c.written.Record(written)
	c.announce(job, status)
	return nil
}

// announce reports conditions that the status has and the job had not.
func (c *Controller) announce(job *batchv1.Job, status *batchv1.JobStatus) {
	news := func(kind batchv1.JobConditionType) bool { return holds(status, kind) && !holds(&job.Status, kind) }
	switch {
	case news(batchv1.JobComplete):
		c.events.Normal(job, "Completed", "Job completed")
	case news(batchv1.JobFailed):
		verdict := conditionOf(status, batchv1.JobFailed)
		c.events.Warning(job, verdict.Reason, "%s", verdict.Message)
	case news(batchv1.JobSuspended):
		c.events.Normal(job, "Suspended", "Job suspended")
	case holds(&job.Status, batchv1.JobSuspended) && !holds(status, batchv1.JobSuspended):
		c.events.Normal(job, "Resumed", "Job resumed")
	}
}

// freeStrays takes the finalizer from pods whose job is gone or going: no
// job will count them.
func (c *Controller) freeStrays(ctx context.Context, key controller.Key, job *batchv1.Job, exists bool) error {
	waiting, err := c.pods.Informer.Lister().ByIndex(byJob, cache.ObjectKey(key.Namespace, key.Name))
	if err != nil {
		return err
	}
	var strays, foreign []*corev1.Pod
	for _, pod := range waiting {
		switch own := exists && metav1.IsControlledBy(pod, job); {
		case !own:
			foreign = append(foreign, pod)
		case job.DeletionTimestamp != nil || finished(&job.Status):
			strays = append(strays, pod)
		}
	}
	if len(foreign) > 0 {
		// The informers are independent: a job that the one does not show yet
		// may have pods that the other shows.
		live, err := c.api.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for the job of pods that wait for it: %w", err)
		}
		for _, pod := range foreign {
			if err != nil || !metav1.IsControlledBy(pod, live) {
				strays = append(strays, pod)
			}
		}
	}
	return c.letGo(ctx, strays)
}

// expire deletes a finished job when its time to live is over.
func (c *Controller) expire(ctx context.Context, job *batchv1.Job) (time.Duration, error) {
	at, expires := expiry(job)
	if !expires || job.DeletionTimestamp != nil {
		return 0, nil
	}
	if left := at.Sub(c.now()); left > 0 {
		return left, nil
	}
	foreground := metav1.DeletePropagationForeground
	err := c.ttlAPI.Namespace(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: &foreground,
		Preconditions:     &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("delete %s after its time to live: %w", describe(job), err)
	}
	return 0, nil
}
