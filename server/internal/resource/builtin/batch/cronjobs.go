package batch

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// maxCronJobName leaves room for the suffix of the jobs' names.
const maxCronJobName = 52

func cronJobRules() define.Rules[*batchv1.CronJob] {
	return define.Rules[*batchv1.CronJob]{
		Default: func(c *batchv1.CronJob) {
			define.SetDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
			define.SetDefaultPtr(&c.Spec.Suspend, false)
			define.SetDefaultPtr(&c.Spec.SuccessfulJobsHistoryLimit, 3)
			define.SetDefaultPtr(&c.Spec.FailedJobsHistoryLimit, 1)
			// Unlike a job's own spec, the template's is completed only as far
			// as its pods: the rest is left to the jobs.
			podspec.DefaultTemplate(&c.Spec.JobTemplate.Spec.Template)
		},
		Validate: validateCronJob,
	}
}

func validateCronJob(c *batchv1.CronJob) field.ErrorList {
	var errs field.ErrorList
	if len(c.Name) > maxCronJobName {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters"))
	}
	errs = append(errs, validateSchedule(c)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("startingDeadlineSeconds"), c.Spec.StartingDeadlineSeconds)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("successfulJobsHistoryLimit"), c.Spec.SuccessfulJobsHistoryLimit)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("failedJobsHistoryLimit"), c.Spec.FailedJobsHistoryLimit)...)
	errs = append(errs, validate.OneOf(validate.SpecPath.Child("concurrencyPolicy"), c.Spec.ConcurrencyPolicy,
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	template := validate.SpecPath.Child("jobTemplate", "spec")
	errs = append(errs, validateJobSpec(template, &c.Spec.JobTemplate.Spec)...)
	if define.ValueOr(c.Spec.JobTemplate.Spec.ManualSelector, false) {
		errs = append(errs, field.NotSupported(template.Child("manualSelector"), "true", []string{"nil", "false"}))
	}
	return errs
}

// parses reports why a schedule cannot be parsed. The library panics on a zone that nothing
// follows.
func parses(schedule string) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("invalid schedule format: %v", cause)
		}
	}()
	_, err = cron.ParseStandard(schedule)
	return err
}

// validateSchedule checks the schedule and its zone. A zone within the schedule
// was never supported, and is refused.
func validateSchedule(c *batchv1.CronJob) field.ErrorList {
	var errs field.ErrorList
	at, schedule := validate.SpecPath.Child("schedule"), c.Spec.Schedule
	if schedule == "" {
		errs = append(errs, field.Required(at, ""))
	} else if err := parses(schedule); err != nil {
		errs = append(errs, field.Invalid(at, schedule, err.Error()))
	}
	if strings.Contains(schedule, "TZ") {
		errs = append(errs, field.Invalid(at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	}
	if c.Spec.TimeZone == nil {
		return errs
	}
	at = validate.SpecPath.Child("timeZone")
	switch zone := *c.Spec.TimeZone; {
	case zone == "":
		errs = append(errs, field.Invalid(at, zone, "timeZone must be nil or non-empty string"))
	case strings.EqualFold(zone, "Local"):
		errs = append(errs, field.Invalid(at, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	default:
		if _, err := time.LoadLocation(zone); err != nil {
			errs = append(errs, field.Invalid(at, zone, err.Error()))
		}
	}
	return errs
}
