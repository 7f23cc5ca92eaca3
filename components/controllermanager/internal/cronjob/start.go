package cronjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
)

// start creates the Job of the latest unserved time, if there is one and its
// policy allows it, and enters it in cron's status. It returns when to look
// again.
func (c *Controller) start(ctx context.Context, cron *batchv1.CronJob, now time.Time) (time.Duration, error) {
	if cron.Spec.Suspend != nil && *cron.Spec.Suspend {
		return 0, nil
	}
	schedule, err := parse(&cron.Spec)
	if zone := (*zoneError)(nil); errors.As(err, &zone) {
		c.events.Warning(cron, "UnknownTimeZone", "%s", zone)
		return 0, nil
	}
	if err != nil {
		// Validation refuses such schedules; only a new one can help.
		c.events.Warning(cron, "UnparseableSchedule", "unparseable schedule: %q : %s", cron.Spec.Schedule, err)
		return 0, nil
	}
	if schedule.Next(now).IsZero() {
		c.events.Warning(cron, "InvalidSchedule", "invalid schedule: %s : it has no time to come", cron.Spec.Schedule)
		return 0, nil
	}
	next := untilNext(schedule, now)
	due := unservedTimes(schedule, cron, now)
	if due.missed > missedMost {
		c.events.Warning(cron, "TooManyMissedTimes",
			"too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	switch {
	case due.last.IsZero():
		return next, nil
	case tooLate(cron, due.last, now):
		c.events.Warning(cron, "MissSchedule", "Missed scheduled time to start a job: %s", due.last.UTC().Format(time.RFC1123Z))
		return next, nil
	case cron.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(cron.Status.Active) > 0:
		// Its end brings us back; if that is within the deadline, this time is
		// served then.
		c.events.Normal(cron, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
		return next, nil
	}
	if there, err := c.stillThere(ctx, cron); !there || err != nil {
		return 0, err
	}
	if cron.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		for _, ref := range append([]corev1.ObjectReference(nil), cron.Status.Active...) {
			if err := c.remove(ctx, cron, ref.Name, ref.UID); err != nil {
				return 0, err
			}
		}
	}
	return next, c.create(ctx, cron, due.last)
}

// stillThere reports whether Jobs may be started or deleted: the CronJob exists, and the informers have come to its version. It
// may be suspended by now, or keep more Jobs, and that a Job has gone has no version, so the server is asked.
func (c *Controller) stillThere(ctx context.Context, cron *batchv1.CronJob) (bool, error) {
	if err := controller.Consistent(ctx, cron); err != nil {
		return false, err
	}
	live, err := c.api.Namespace(cron.Namespace).Get(ctx, cron.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the CronJob before its Jobs change: %w", err)
	case live.UID != cron.UID:
		return false, nil // the watch brings that
	}
	return true, controller.Consistent(ctx, live)
}

func tooLate(cron *batchv1.CronJob, scheduled, now time.Time) bool {
	d, ok := startingDeadline(&cron.Spec)
	return ok && scheduled.Add(d).Before(now)
}

// create makes the Job of a time. One that is there already was made by us
// before we could write that down, or belongs to another owner, and then the time is
// taken.
func (c *Controller) create(ctx context.Context, cron *batchv1.CronJob, scheduled time.Time) error {
	api := c.jobAPI.Namespace(cron.Namespace)
	wanted := jobFor(cron, scheduled)
	job, err := api.Create(ctx, wanted, metav1.CreateOptions{})
	switch {
	case err == nil:
		c.events.Normal(cron, "SuccessfulCreate", "Created job %v", job.Name)
	case apierrors.IsAlreadyExists(err):
		if job, err = api.Get(ctx, wanted.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("read job %s: %w", wanted.Name, err)
		}
		if !metav1.IsControlledBy(job, cron) {
			return nil
		}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	default:
		c.events.Warning(cron, "FailedCreate", "Error creating job: %v", err)
		return fmt.Errorf("create job %s: %w", wanted.Name, err)
	}
	if outcome(job) == "" && !active(cron, job.UID) {
		cron.Status.Active = append(cron.Status.Active, corev1.ObjectReference{
			APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name,
			UID: job.UID, ResourceVersion: job.ResourceVersion,
		})
	}
	cron.Status.LastScheduleTime = &metav1.Time{Time: scheduled}
	return nil
}

// jobFor makes the Job of a time from the template.
func jobFor(cron *batchv1.CronJob, scheduled time.Time) *batchv1.Job {
	template := cron.Spec.JobTemplate.DeepCopy()
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[batchv1.CronJobScheduledTimestampAnnotation] = inZone(cron, scheduled).Format(time.RFC3339)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cron.Namespace, Name: jobName(cron, scheduled), Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, kind)},
		},
		Spec: template.Spec,
	}
}

// inZone is a time as the CronJob's author would write it.
func inZone(cron *batchv1.CronJob, t time.Time) time.Time {
	if cron.Spec.TimeZone != nil {
		if zone, err := time.LoadLocation(*cron.Spec.TimeZone); err == nil {
			return t.In(zone)
		}
	}
	return t
}
