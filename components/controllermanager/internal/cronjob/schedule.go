package cronjob

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
)

// missedMost is how many times may pass unserved before that is worth a
// warning: either no controller ran for long, or a clock is wrong.
const missedMost = 100

// parse reads a CronJob's schedule in its time zone.
func parse(spec *batchv1.CronJobSpec) (cron.Schedule, error) {
	schedule := spec.Schedule
	if spec.TimeZone != nil && !strings.Contains(schedule, "TZ") {
		if _, err := time.LoadLocation(*spec.TimeZone); err != nil {
			return nil, &zoneError{*spec.TimeZone, err}
		}
		schedule = "TZ=" + *spec.TimeZone + " " + schedule
	}
	return parseStandard(schedule)
}

// zoneError is about a time zone that this machine does not know.
type zoneError struct {
	zone  string
	cause error
}

func (e *zoneError) Error() string { return fmt.Sprintf("invalid timeZone: %q: %v", e.zone, e.cause) }

// parseStandard turns the library's panics into errors: another API server may have stored
// a zone that nothing follows.
func parseStandard(text string) (schedule cron.Schedule, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			schedule, err = nil, fmt.Errorf("invalid schedule format: %v", cause)
		}
	}()
	return cron.ParseStandard(text)
}

// unserved is what a schedule says about the time between its last Job, or its
// creation, and now.
type unserved struct {
	last   time.Time // the latest time to serve; zero: none
	missed int       // how many there are, at most missedMost+1
}

// unservedTimes finds the latest time of the schedule that has come since the
// last Job. Those before it are not made up for.
func unservedTimes(schedule cron.Schedule, c *batchv1.CronJob, now time.Time) unserved {
	since := c.CreationTimestamp.Time
	if served := c.Status.LastScheduleTime; served != nil {
		since = served.Time
	}
	if d, ok := startingDeadline(&c.Spec); ok {
		// What is older than the deadline is not started any more. Those that
		// have just become too old are still found, to be reported.
		since = later(since, now.Add(-d-deadlineGrace))
	}
	var u unserved
	for t := schedule.Next(since); u.missed <= missedMost && !t.IsZero() && !t.After(now); t = schedule.Next(t) {
		u.last = t
		u.missed++
	}
	if u.missed > missedMost {
		u.last = latestBefore(schedule, since, now)
	}
	return u
}

// startingDeadline is how late a Job may start; false: there is no limit. A
// deadline that does not fit into a time.Duration with the grace is none.
func startingDeadline(spec *batchv1.CronJobSpec) (time.Duration, bool) {
	s := spec.StartingDeadlineSeconds
	if s == nil || *s >= int64((math.MaxInt64-deadlineGrace)/time.Second) {
		return 0, false
	}
	return time.Duration(*s) * time.Second, true
}

// deadlineGrace is for how long a missed start is reported.
const deadlineGrace = time.Minute

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// latestBefore finds the last time in (since, now] without visiting all: that
// Next of a moment is not after now holds for all moments before the last
// time, and for none from it on.
func latestBefore(schedule cron.Schedule, since, now time.Time) time.Time {
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		return since.Add(now.Sub(since).Truncate(every.Delay))
	}
	due := func(t time.Time) bool { next := schedule.Next(t); return !next.IsZero() && !next.After(now) }
	seconds := int(now.Sub(since) / time.Second)
	first := sort.Search(seconds, func(i int) bool { return !due(since.Add(time.Duration(i) * time.Second)) })
	return schedule.Next(since.Add(time.Duration(first-1) * time.Second))
}

// untilNext is how long it is until the schedule's next time; 0 is for ever.
func untilNext(schedule cron.Schedule, now time.Time) time.Duration {
	next := schedule.Next(now)
	if next.IsZero() {
		return 0
	}
	return next.Sub(now) + clockMargin
}

// clockMargin makes sure that a timer does not go off before the time has come
// by the clock that is asked then.
const clockMargin = 100 * time.Millisecond

// jobName is the same for every attempt to serve a time.
func jobName(c *batchv1.CronJob, scheduled time.Time) string {
	return fmt.Sprintf("%s-%d", c.Name, scheduled.Unix()/60)
}
