package batch

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// jobStatusChange is a write to the status of a job. Jobs may have a controller that others
// wrote (KEP-4368): what clients of jobs rely on is checked here. A rule holds for what has
// changed, so that other fields can be written though one of them was wrong before.
type jobStatusChange struct {
	job, old *batchv1.Job
	path     *field.Path
	errs     field.ErrorList
}

func validateJobStatusUpdate(j, old *batchv1.Job) field.ErrorList {
	c := &jobStatusChange{job: j, old: old, path: field.NewPath("status")}
	c.checkCounts()
	c.checkEnds()
	c.checkCompletionTime()
	c.checkResult()
	c.checkFinished()
	c.checkIndexes()
	c.checkPods()
	c.checkCriteria()
	c.checkHistory()
	return c.errs
}

func (c *jobStatusChange) invalid(at string, value any, message string) {
	c.errs = append(c.errs, field.Invalid(c.path.Child(at), value, message))
}

// condition is invalid for the conditions, whose value is not said.
func (c *jobStatusChange) condition(message string) {
	c.invalid("conditions", field.OmitValueType{}, message)
}

// has reports whether a condition is true now.
func (c *jobStatusChange) has(condition batchv1.JobConditionType) bool {
	return hasCondition(c.job, condition, corev1.ConditionTrue)
}

func (c *jobStatusChange) had(condition batchv1.JobConditionType) bool {
	return hasCondition(c.old, condition, corev1.ConditionTrue)
}

// changed reports whether a condition becomes true, or is true no more.
func (c *jobStatusChange) changed(condition batchv1.JobConditionType) bool {
	return c.has(condition) != c.had(condition)
}

func hasCondition(j *batchv1.Job, condition batchv1.JobConditionType, status corev1.ConditionStatus) bool {
	for i := range j.Status.Conditions {
		if j.Status.Conditions[i].Type == condition && j.Status.Conditions[i].Status == status {
			return true
		}
	}
	return false
}

func isFinished(j *batchv1.Job) bool {
	return hasCondition(j, batchv1.JobComplete, corev1.ConditionTrue) || hasCondition(j, batchv1.JobFailed, corev1.ConditionTrue)
}

func (c *jobStatusChange) checkCounts() {
	s := &c.job.Status
	c.errs = append(c.errs, validate.NotNegative(c.path.Child("active"), &s.Active)...)
	c.errs = append(c.errs, validate.NotNegative(c.path.Child("succeeded"), &s.Succeeded)...)
	c.errs = append(c.errs, validate.NotNegative(c.path.Child("failed"), &s.Failed)...)
	c.errs = append(c.errs, validate.NotNegative(c.path.Child("ready"), s.Ready)...)
	c.errs = append(c.errs, validate.NotNegative(c.path.Child("terminating"), s.Terminating)...)
	if s.UncountedTerminatedPods == nil {
		return
	}
	seen, path := sets.New[types.UID](), c.path.Child("uncountedTerminatedPods")
	c.checkUIDs(path.Child("succeeded"), s.UncountedTerminatedPods.Succeeded, seen)
	c.checkUIDs(path.Child("failed"), s.UncountedTerminatedPods.Failed, seen)
}

// checkUIDs checks that no pod is named twice, in this list or in one that was checked with seen.
func (c *jobStatusChange) checkUIDs(path *field.Path, uids []types.UID, seen sets.Set[types.UID]) {
	for i, uid := range uids {
		switch {
		case uid == "":
			c.errs = append(c.errs, field.Invalid(path.Index(i), uid, "must not be empty"))
		case seen.Has(uid):
			c.errs = append(c.errs, field.Duplicate(path.Index(i), uid))
		default:
			seen.Insert(uid)
		}
	}
}

// checkEnds checks that a job does not end in two ways.
func (c *jobStatusChange) checkEnds() {
	if !c.has(batchv1.JobComplete) {
		return
	}
	completes := c.changed(batchv1.JobComplete)
	if (completes || c.changed(batchv1.JobFailed)) && c.has(batchv1.JobFailed) {
		c.condition("cannot set Complete=True and Failed=true conditions")
	}
	if (completes || c.changed(batchv1.JobFailureTarget)) && c.has(batchv1.JobFailureTarget) {
		c.condition("cannot set Complete=True and FailureTarget=true conditions")
	}
}

func (c *jobStatusChange) checkCompletionTime() {
	s, was := &c.job.Status, &c.old.Status
	moved := !s.CompletionTime.Equal(was.CompletionTime)
	if moved || c.changed(batchv1.JobComplete) {
		switch complete := c.has(batchv1.JobComplete); {
		case s.CompletionTime != nil && !complete:
			c.invalid("completionTime", s.CompletionTime, "cannot set completionTime when there is no Complete=True condition")
		case s.CompletionTime == nil && complete:
			c.errs = append(c.errs, field.Required(c.path.Child("completionTime"), "completionTime is required for Complete jobs"))
		}
	}
	if (moved || !s.StartTime.Equal(was.StartTime)) && s.StartTime != nil && s.CompletionTime != nil && s.CompletionTime.Before(s.StartTime) {
		c.invalid("completionTime", s.CompletionTime, "must be equal to or after `startTime`")
	}
}

// checkResult checks that the result of a job was decided before, or is with this write.
func (c *jobStatusChange) checkResult() {
	if (c.changed(batchv1.JobFailed) || c.failedIndexesChanged()) && c.has(batchv1.JobFailed) && !c.has(batchv1.JobFailureTarget) {
		c.condition("cannot set Failed=True condition without the FailureTarget=true condition")
	}
	if (c.changed(batchv1.JobComplete) || c.changed(batchv1.JobSuccessCriteriaMet)) && c.has(batchv1.JobComplete) && !c.has(batchv1.JobSuccessCriteriaMet) {
		c.condition("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
	}
}

// checkFinished checks that the pods of a finished job have ended and were counted.
func (c *jobStatusChange) checkFinished() {
	if !isFinished(c.job) {
		return
	}
	s, was, finishes := &c.job.Status, &c.old.Status, !isFinished(c.old)
	if (finishes || s.Active != was.Active) && s.Active > 0 {
		c.invalid("active", s.Active, "active>0 is invalid for finished job")
	}
	nothingToDo := define.ValueOr(c.job.Spec.Suspend, false) && c.job.Spec.Completions != nil && *c.job.Spec.Completions == 0
	if (finishes || !s.StartTime.Equal(was.StartTime)) && !nothingToDo && s.StartTime == nil {
		c.errs = append(c.errs, field.Required(c.path.Child("startTime"), "startTime is required for finished job"))
	}
	uncounted := s.UncountedTerminatedPods
	if (finishes || !equality.Semantic.DeepEqual(uncounted, was.UncountedTerminatedPods)) && uncounted != nil && len(uncounted.Failed)+len(uncounted.Succeeded) > 0 {
		c.invalid("uncountedTerminatedPods", uncounted, "must be empty for finished job")
	}
}

func (c *jobStatusChange) failedIndexesChanged() bool {
	return !equality.Semantic.DeepEqual(c.job.Status.FailedIndexes, c.old.Status.FailedIndexes)
}

// checkIndexes checks which indexes a job says to have completed and failed.
func (c *jobStatusChange) checkIndexes() {
	spec, completed, failed := &c.job.Spec, c.job.Status.CompletedIndexes, c.job.Status.FailedIndexes
	completedChanged, failedChanged := completed != c.old.Status.CompletedIndexes, c.failedIndexesChanged()
	if completedChanged {
		c.checkFormat("completedIndexes", completed, completed)
	}
	if failedChanged && spec.BackoffLimitPerIndex != nil && failed != nil {
		c.checkFormat("failedIndexes", failed, *failed)
	}
	if completedChanged && completed != "" && !isIndexed(spec) {
		c.invalid("completedIndexes", completed, "cannot set non-empty completedIndexes when non-indexed completion mode")
	}
	if failedChanged && failed != nil && spec.BackoffLimitPerIndex == nil {
		c.invalid("failedIndexes", *failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
	}
	if (completedChanged || failedChanged) && spec.Completions != nil && failed != nil {
		if at, overlap := firstOverlap(completed, *failed, *spec.Completions); overlap {
			c.invalid("failedIndexes", *failed, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", at))
		}
	}
}

func (c *jobStatusChange) checkFormat(at string, value any, indexes string) {
	if c.job.Spec.Completions == nil {
		return
	}
	if _, err := countIndexes(indexes, *c.job.Spec.Completions); err != nil {
		c.invalid(at, value, "error parsing "+at+": "+err.Error())
	}
}

// firstOverlap returns the first index that both lists have. Spans that cannot be read are
// left out: checkFormat complains about them.
func firstOverlap(completed, failed string, limit int32) (index int32, overlap bool) {
	a, b := readSpans(completed, limit), readSpans(failed, limit)
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].first <= b[0].last && b[0].first <= a[0].last:
			return max(a[0].first, b[0].first), true
		case a[0].first <= b[0].first:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return 0, false
}

type indexSpan struct{ first, last int32 }

func readSpans(text string, limit int32) []indexSpan {
	if text == "" {
		return nil
	}
	var spans []indexSpan
	for item := range strings.SplitSeq(text, ",") {
		if first, last, err := parseSpan(item, limit); err == nil {
			spans = append(spans, indexSpan{first, last})
		}
	}
	return spans
}

func (c *jobStatusChange) checkPods() {
	s, was := &c.job.Status, &c.old.Status
	finishes := isFinished(c.job) != isFinished(c.old)
	if (finishes || !equality.Semantic.DeepEqual(s.Terminating, was.Terminating)) && define.ValueOr(s.Terminating, 0) > 0 && isFinished(c.job) {
		c.invalid("terminating", s.Terminating, "terminating>0 is invalid for finished job")
	}
	if (s.Active != was.Active || !equality.Semantic.DeepEqual(s.Ready, was.Ready)) && s.Ready != nil && *s.Ready > s.Active {
		c.invalid("ready", *s.Ready, "cannot set more ready pods than active")
	}
}

func (c *jobStatusChange) checkCriteria() {
	met := c.has(batchv1.JobSuccessCriteriaMet)
	if met && c.has(batchv1.JobFailed) {
		c.condition("cannot set SuccessCriteriaMet=True and Failed=true conditions")
	}
	if met && c.has(batchv1.JobFailureTarget) {
		c.condition("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
	}
	if c.job.Spec.SuccessPolicy != nil && !met && c.has(batchv1.JobComplete) {
		c.condition("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
	}
}

// checkHistory checks that a job does not take back what it has said.
func (c *jobStatusChange) checkHistory() {
	s, was := &c.job.Status, &c.old.Status
	for _, end := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget} {
		if c.had(end) && !c.has(end) {
			c.condition(fmt.Sprintf("cannot disable the terminal %s=True condition", end))
		}
	}
	if s.Failed < was.Failed {
		c.invalid("failed", s.Failed, "cannot decrease the failed counter")
	}
	// An indexed job whose completions follow its parallelism can be scaled down.
	elastic := isIndexed(&c.job.Spec) && equality.Semantic.DeepEqual(c.job.Spec.Completions, c.job.Spec.Parallelism)
	if !elastic && s.Succeeded < was.Succeeded {
		c.invalid("succeeded", s.Succeeded, "cannot decrease the succeeded counter")
	}
	if s.CompletionTime != nil && was.CompletionTime != nil && !s.CompletionTime.Equal(was.CompletionTime) {
		c.invalid("completionTime", s.CompletionTime, validate.Immutable)
	}
	c.checkStartTime()
	if c.had(batchv1.JobSuccessCriteriaMet) && !c.has(batchv1.JobSuccessCriteriaMet) {
		c.condition("cannot disable the SuccessCriteriaMet=True condition")
	}
	if c.had(batchv1.JobComplete) && !c.had(batchv1.JobSuccessCriteriaMet) && c.has(batchv1.JobSuccessCriteriaMet) {
		c.condition("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
	}
}

// checkStartTime: only a job that is suspended, or says with this write that it is no more,
// begins again.
func (c *jobStatusChange) checkStartTime() {
	s, was := &c.job.Status, &c.old.Status
	resumes := c.had(batchv1.JobSuspended) && hasCondition(c.job, batchv1.JobSuspended, corev1.ConditionFalse)
	if was.StartTime != nil && !s.StartTime.Equal(was.StartTime) && !resumes && !define.ValueOr(c.job.Spec.Suspend, false) {
		c.invalid("startTime", s.StartTime, "field is immutable for unsuspended job once set")
	}
}
