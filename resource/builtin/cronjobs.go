package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxCronJobName leaves room for the suffix of the jobs' names.
const maxCronJobName = 52

func cronJobRules() rules[*batchv1.CronJob] {
	return rules[*batchv1.CronJob]{
		Default: func(c *batchv1.CronJob) {
			setDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
			setDefaultPtr(&c.Spec.Suspend, false)
			setDefaultPtr(&c.Spec.SuccessfulJobsHistoryLimit, 3)
			setDefaultPtr(&c.Spec.FailedJobsHistoryLimit, 1)
			// Unlike a job's own spec, the template's is completed only as far
			// as its pods: the rest is left to the jobs.
			defaultPodTemplate(&c.Spec.JobTemplate.Spec.Template)
		},
		Validate: validateCronJob,
	}
}

func validateCronJob(c *batchv1.CronJob) field.ErrorList {
	var errs field.ErrorList
	if len(c.Name) > maxCronJobName {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters"))
	}
	if c.Spec.Schedule == "" {
		errs = append(errs, field.Required(specPath.Child("schedule"), ""))
	} else if err := checkSchedule(c.Spec.Schedule); err != nil {
		errs = append(errs, field.Invalid(specPath.Child("schedule"), c.Spec.Schedule, err.Error()))
	}
	if zone := c.Spec.TimeZone; zone != nil {
		if _, err := time.LoadLocation(*zone); err != nil || *zone == "" || *zone == "Local" {
			errs = append(errs, field.Invalid(specPath.Child("timeZone"), *zone, "unknown time zone "+*zone))
		}
	}
	errs = append(errs, notNegative(specPath.Child("startingDeadlineSeconds"), c.Spec.StartingDeadlineSeconds)...)
	errs = append(errs, notNegative(specPath.Child("successfulJobsHistoryLimit"), c.Spec.SuccessfulJobsHistoryLimit)...)
	errs = append(errs, notNegative(specPath.Child("failedJobsHistoryLimit"), c.Spec.FailedJobsHistoryLimit)...)
	errs = append(errs, oneOf(specPath.Child("concurrencyPolicy"), c.Spec.ConcurrencyPolicy,
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	template := specPath.Child("jobTemplate", "spec")
	errs = append(errs, validateJobSpec(template, &c.Spec.JobTemplate.Spec)...)
	if valueOr(c.Spec.JobTemplate.Spec.ManualSelector, false) {
		errs = append(errs, field.NotSupported(template.Child("manualSelector"), "true", []string{"nil", "false"}))
	}
	return errs
}

// cronField is one of the five fields of a schedule.
type cronField struct {
	name     string
	min, max int
	names    []string // for months and days of the week, the first standing for min
}

var cronFields = []cronField{
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", min: 0, max: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// checkSchedule checks a schedule in standard cron syntax, a descriptor like
// @daily, or "@every 1h30m".
func checkSchedule(schedule string) error {
	switch schedule {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
		return nil
	}
	if every, ok := strings.CutPrefix(schedule, "@every "); ok {
		_, err := time.ParseDuration(every)
		return err
	}
	parts := strings.Fields(schedule)
	if len(parts) != len(cronFields) {
		return fmt.Errorf("expected exactly %d fields, found %d: %q", len(cronFields), len(parts), parts)
	}
	for i, f := range cronFields {
		for item := range strings.SplitSeq(parts[i], ",") {
			if err := f.check(item); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	return nil
}

// check checks one item of a field's list: *, n, n-m, and each with a step.
func (f cronField) check(item string) error {
	span, step, stepped := strings.Cut(item, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n <= 0) {
		return fmt.Errorf("step %q must be a positive number", step)
	}
	if span == "*" || span == "?" {
		return nil
	}
	low, high, ranged := strings.Cut(span, "-")
	from, err := f.number(low)
	if err != nil || !ranged {
		return err
	}
	to, err := f.number(high)
	if err != nil {
		return err
	}
	if from > to {
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d)", from, to)
	}
	return nil
}

func (f cronField) number(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if n < f.min || n > f.max {
		return 0, fmt.Errorf("%d is not between %d and %d", n, f.min, f.max)
	}
	return n, nil
}
