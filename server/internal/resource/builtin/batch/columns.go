package batch

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := batchv1.SchemeGroupVersion
	all.Add(gv, "CronJob", cronJobLayout())
	all.Add(gv, "Job", jobLayout())
}

func jobLayout() columns.Layout {
	return columns.Table(func(j *batchv1.Job, now time.Time) []any {
		names, images := columns.ContainerCells(j.Spec.Template.Spec.Containers)
		return []any{
			j.Name, jobStatus(j), jobCompletions(j), jobDuration(j, now), columns.Since(j.CreationTimestamp, now),
			names, images, metav1.FormatLabelSelector(j.Spec.Selector),
		}
	},
		columns.NameColumn,
		columns.Text("Status", "Status of the job."),
		columns.Text("Completions", batchv1.JobStatus{}.SwaggerDoc()["succeeded"]),
		columns.Text("Duration", "Time required to complete the job."),
		columns.AgeColumn, columns.Wide(columns.ContainersColumn), columns.Wide(columns.ImagesColumn), columns.Wide(columns.Text("Selector", batchv1.JobSpec{}.SwaggerDoc()["selector"])),
	)
}

func jobStatus(j *batchv1.Job) string {
	typeOf := func(c *batchv1.JobCondition) batchv1.JobConditionType { return c.Type }
	holds := func(want batchv1.JobConditionType) bool {
		c := columns.Condition(j.Status.Conditions, typeOf, want)
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
	case holds(batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func jobCompletions(j *batchv1.Job) string {
	if j.Spec.Completions != nil {
		return columns.Fraction(j.Status.Succeeded, *j.Spec.Completions)
	}
	// Without a number, one success completes the job, however many pods try.
	if parallelism := columns.ValueOr(j.Spec.Parallelism, 0); parallelism > 1 {
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallelism)
	}
	return columns.Fraction(j.Status.Succeeded, 1)
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

func cronJobLayout() columns.Layout {
	spec, status := batchv1.CronJobSpec{}.SwaggerDoc(), batchv1.CronJobStatus{}.SwaggerDoc()
	return columns.Table(func(c *batchv1.CronJob, now time.Time) []any {
		names, images := columns.ContainerCells(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
		last := columns.None
		if c.Status.LastScheduleTime != nil {
			last = columns.Since(*c.Status.LastScheduleTime, now)
		}
		suspend := columns.Unset
		if c.Spec.Suspend != nil {
			suspend = "False"
			if *c.Spec.Suspend {
				suspend = "True"
			}
		}
		return []any{
			c.Name, c.Spec.Schedule, columns.ValueOr(c.Spec.TimeZone, columns.None), suspend, int64(len(c.Status.Active)), last,
			columns.Since(c.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(c.Spec.JobTemplate.Spec.Selector),
		}
	},
		columns.NameColumn,
		columns.Text("Schedule", spec["schedule"]),
		columns.Text("Timezone", spec["timeZone"]),
		columns.Boolean("Suspend", spec["suspend"]),
		columns.Integer("Active", status["active"]),
		columns.Text("Last Schedule", status["lastScheduleTime"]),
		columns.AgeColumn, columns.Wide(columns.ContainersColumn), columns.Wide(columns.ImagesColumn), columns.Wide(columns.Text("Selector", batchv1.JobSpec{}.SwaggerDoc()["selector"])),
	)
}
