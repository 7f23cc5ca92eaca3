package columns

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func batchGroup(all layouts) {
	gv := batchv1.SchemeGroupVersion
	all.add(gv, "CronJob", cronJobs())
	all.add(gv, "Job", jobs())
}

func jobs() layout {
	return table(func(j *batchv1.Job, now time.Time) []any {
		names, images := containerCells(j.Spec.Template.Spec.Containers)
		return []any{
			j.Name, jobStatus(j), jobCompletions(j), jobDuration(j, now), since(j.CreationTimestamp, now),
			names, images, metav1.FormatLabelSelector(j.Spec.Selector),
		}
	},
		nameColumn,
		text("Status", "Whether the job runs, and how it ended."),
		text("Completions", "How many of the wanted pods succeeded."),
		text("Duration", "How long the job ran, or has been running."),
		ageColumn, containersColumn, imagesColumn, selectorColumn,
	)
}

func jobStatus(j *batchv1.Job) string {
	typeOf := func(c *batchv1.JobCondition) batchv1.JobConditionType { return c.Type }
	holds := func(want batchv1.JobConditionType) bool {
		c := condition(j.Status.Conditions, typeOf, want)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	switch {
	case holds(batchv1.JobComplete):
		return "Complete"
	case holds(batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case holds(batchv1.JobSuspended):
		return "Suspended"
	case holds(batchv1.JobFailureTarget):
		return "FailureTarget"
	}
	return "Running"
}

func jobCompletions(j *batchv1.Job) string {
	if j.Spec.Completions != nil {
		return fraction(j.Status.Succeeded, *j.Spec.Completions)
	}
	// Without a number, one success completes the job, however many pods try.
	if parallelism := value(j.Spec.Parallelism, 0); parallelism > 1 {
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallelism)
	}
	return fraction(j.Status.Succeeded, 1)
}

func jobDuration(j *batchv1.Job, now time.Time) string {
	if j.Status.StartTime == nil {
		return ""
	}
	end := now
	if j.Status.CompletionTime != nil {
		end = j.Status.CompletionTime.Time
	}
	return duration.HumanDuration(end.Sub(j.Status.StartTime.Time))
}

func cronJobs() layout {
	return table(func(c *batchv1.CronJob, now time.Time) []any {
		names, images := containerCells(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
		last := none
		if c.Status.LastScheduleTime != nil {
			last = since(*c.Status.LastScheduleTime, now)
		}
		suspend := unset
		if c.Spec.Suspend != nil {
			suspend = "False"
			if *c.Spec.Suspend {
				suspend = "True"
			}
		}
		return []any{
			c.Name, c.Spec.Schedule, value(c.Spec.TimeZone, none), suspend, int64(len(c.Status.Active)), last,
			since(c.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(c.Spec.JobTemplate.Spec.Selector),
		}
	},
		nameColumn,
		text("Schedule", "When jobs are started, in cron's format."),
		text("Timezone", "The time zone of the schedule."),
		boolean("Suspend", "Whether no new jobs are started."),
		integer("Active", "The number of jobs that run."),
		text("Last Schedule", "The time since a job was started last."),
		ageColumn, containersColumn, imagesColumn, selectorColumn,
	)
}
