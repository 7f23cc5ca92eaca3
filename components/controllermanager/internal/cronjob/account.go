package cronjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// outcome is the condition with which a Job has ended, or "".
func outcome(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

func active(cron *batchv1.CronJob, uid types.UID) bool {
	return slices.ContainsFunc(cron.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

func dropActive(cron *batchv1.CronJob, uid types.UID) {
	cron.Status.Active = slices.DeleteFunc(cron.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

// account brings the list of running Jobs and the time of the last success up
// to date, in cron.
func (c *Controller) account(ctx context.Context, cron *batchv1.CronJob, owned []*batchv1.Job) error {
	there := map[types.UID]bool{}
	for _, job := range owned {
		there[job.UID] = true
		ended, listed := outcome(job), active(cron, job.UID)
		switch {
		case ended != "" && listed:
			dropActive(cron, job.UID)
			c.events.Normal(cron, "SawCompletedJob", "Saw completed job: %s, condition: %v", job.Name, ended)
		case ended == "" && !listed && job.DeletionTimestamp == nil:
			c.events.Warning(cron, "UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", job.Name)
		}
		if done := job.Status.CompletionTime; ended == batchv1.JobComplete && done != nil &&
			(cron.Status.LastSuccessfulTime == nil || done.After(cron.Status.LastSuccessfulTime.Time)) {
			cron.Status.LastSuccessfulTime = done.DeepCopy()
		}
	}
	for _, ref := range slices.Clone(cron.Status.Active) {
		if there[ref.UID] {
			continue
		}
		// The informer may only be late. What the server does not have is gone.
		job, err := c.jobAPI.Namespace(cron.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for job %s: %w", ref.Name, err)
		}
		if err != nil || job.UID != ref.UID {
			dropActive(cron, ref.UID)
			c.events.Normal(cron, "MissingJob", "Active job went missing: %v", ref.Name)
		}
	}
	return nil
}

// forgetOldest deletes ended Jobs beyond the limits of the history.
func (c *Controller) forgetOldest(ctx context.Context, cron *batchv1.CronJob, owned []*batchv1.Job) error {
	by := map[batchv1.JobConditionType][]*batchv1.Job{}
	for _, job := range owned {
		if job.DeletionTimestamp == nil {
			by[outcome(job)] = append(by[outcome(job)], job)
		}
	}
	return errors.Join(
		c.keep(ctx, cron, by[batchv1.JobComplete], cron.Spec.SuccessfulJobsHistoryLimit),
		c.keep(ctx, cron, by[batchv1.JobFailed], cron.Spec.FailedJobsHistoryLimit))
}

func (c *Controller) keep(ctx context.Context, cron *batchv1.CronJob, jobs []*batchv1.Job, limit *int32) error {
	if limit == nil || len(jobs) <= int(*limit) {
		return nil
	}
	if there, err := c.stillThere(ctx, cron); !there || err != nil {
		return err
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(startOf(a).Compare(startOf(b).Time), cmp.Compare(a.Name, b.Name))
	})
	for _, job := range jobs[:len(jobs)-int(*limit)] {
		if err := c.remove(ctx, cron, job.Name, job.UID); err != nil {
			return err
		}
	}
	return nil
}

func startOf(job *batchv1.Job) metav1.Time {
	if job.Status.StartTime != nil {
		return *job.Status.StartTime
	}
	return job.CreationTimestamp
}

// remove deletes a Job with its pods, and strikes it from the running ones.
func (c *Controller) remove(ctx context.Context, cron *batchv1.CronJob, name string, uid types.UID) error {
	err := c.jobAPI.Namespace(cron.Namespace).Delete(ctx, name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.events.Warning(cron, "FailedDelete", "Deleted job: %v", err)
		return fmt.Errorf("delete job %s: %w", name, err)
	}
	dropActive(cron, uid)
	if err == nil {
		c.events.Normal(cron, "SuccessfulDelete", "Deleted job %v", name)
	}
	return nil
}
