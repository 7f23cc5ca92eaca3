package batch

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
			defaultPodConditions(c.Spec.JobTemplate.Spec.PodFailurePolicy)
		},
		ValidateCreate: func(c *batchv1.CronJob) field.ErrorList { return validateCronJob(c, nil) },
		ValidateUpdate: validateCronJob,
		Warnings: func(c, old *batchv1.CronJob) []string {
			path, spec := validate.SpecPath.Child("jobTemplate", "spec"), &c.Spec.JobTemplate.Spec
			if old == nil {
				return jobWarnings(c, nil, path, spec)
			}
			warnings := jobWarnings(c, old, path, spec)
			if strings.Contains(c.Spec.Schedule, "TZ") {
				warnings = append(warnings, "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead,"+
					" see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
			}
			return warnings
		},
	}
}

// validateCronJob checks a cron job; old is nil for a new one. What an old one has, and a new one may
// not have, stays: a long name, a zone in the schedule, a zone that is not known any more.
func validateCronJob(c, old *batchv1.CronJob) field.ErrorList {
	zoneInSchedule, sameZone := false, false
	if old != nil {
		zoneInSchedule, sameZone = strings.Contains(old.Spec.Schedule, "TZ"), equality.Semantic.DeepEqual(c.Spec.TimeZone, old.Spec.TimeZone)
	}
	errs := validateSchedule(validate.SpecPath.Child("schedule"), &c.Spec, zoneInSchedule)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("startingDeadlineSeconds"), c.Spec.StartingDeadlineSeconds)...)
	if c.Spec.TimeZone != nil && !sameZone {
		errs = append(errs, validateTimeZone(validate.SpecPath.Child("timeZone"), *c.Spec.TimeZone)...)
	}
	errs = append(errs, validate.OneOfInOrder(validate.SpecPath.Child("concurrencyPolicy"), c.Spec.ConcurrencyPolicy,
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, validateJobTemplate(validate.SpecPath.Child("jobTemplate", "spec"), &c.Spec.JobTemplate.Spec)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("successfulJobsHistoryLimit"), c.Spec.SuccessfulJobsHistoryLimit)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("failedJobsHistoryLimit"), c.Spec.FailedJobsHistoryLimit)...)
	if old == nil && len(c.Name) > maxCronJobName {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters"))
	}
	// kube-apiserver has this rule in the tags of the type, and reports it last.
	return append(errs, validate.Required(validate.SpecPath.Child("schedule"), c.Spec.Schedule)...)
}

func validateJobTemplate(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	errs := validateJobSpec(path, spec)
	if spec.Selector != nil {
		errs = append(errs, field.Invalid(path.Child("selector"), spec.Selector, "`selector` will be auto-generated"))
	}
	if define.ValueOr(spec.ManualSelector, false) {
		errs = append(errs, field.NotSupported(path.Child("manualSelector"), spec.ManualSelector, []string{"nil", "false"}))
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

// validateSchedule checks the schedule. A zone within it was never supported, and is refused but
// where it has been before.
func validateSchedule(path *field.Path, spec *batchv1.CronJobSpec, zoneInSchedule bool) field.ErrorList {
	if spec.Schedule == "" {
		return nil // validateCronJob complains
	}
	var errs field.ErrorList
	if err := parses(spec.Schedule); err != nil {
		errs = append(errs, field.Invalid(path, spec.Schedule, err.Error()))
	}
	switch hasZone := strings.Contains(spec.Schedule, "TZ"); {
	case hasZone && !zoneInSchedule:
		errs = append(errs, field.Invalid(path, spec.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	case hasZone && spec.TimeZone != nil:
		errs = append(errs, field.Invalid(path, spec.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
	}
	return errs
}

// zonePart is what may stand between the slashes of a zone's name: it becomes part of a path.
var zonePart = regexp.MustCompile(`^[A-Za-z\.\-_0-9+]{1,14}$`)

func validateTimeZone(path *field.Path, zone string) field.ErrorList {
	if zone == "" {
		return field.ErrorList{field.Invalid(path, zone, "timeZone must be nil or non-empty string")}
	}
	for part := range strings.SplitSeq(zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			return field.ErrorList{field.Invalid(path, zone, "unknown time zone "+zone)}
		}
	}
	var errs field.ErrorList
	if strings.EqualFold(zone, "Local") {
		errs = append(errs, field.Invalid(path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if _, err := time.LoadLocation(zone); err != nil {
		errs = append(errs, field.Invalid(path, zone, err.Error()))
	}
	return errs
}
