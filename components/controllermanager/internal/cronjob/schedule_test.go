package cronjob

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func cronOf(schedule, zone string) *batchv1.CronJob {
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.NewTime(noon)}}
	c.Spec.Schedule = schedule
	if zone != "" {
		c.Spec.TimeZone = &zone
	}
	return c
}

func TestUnservedTimes(t *testing.T) {
	minutes := func(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Minute))) }
	for _, c := range []struct {
		name     string
		schedule string
		zone     string
		served   time.Time
		deadline int64
		now      time.Time
		last     time.Time
		missed   int
	}{
		{"too early", "*/5 * * * *", "", time.Time{}, 0, minutes(4.9), time.Time{}, 0},
		{"the first", "*/5 * * * *", "", time.Time{}, 0, minutes(5), minutes(5), 1},
		{"the latest of three", "*/5 * * * *", "", time.Time{}, 0, minutes(17), minutes(15), 3},
		{"served already", "*/5 * * * *", "", minutes(15), 0, minutes(17), time.Time{}, 0},
		{"older than the deadline", "*/5 * * * *", "", time.Time{}, 30, minutes(9), time.Time{}, 0},
		{"just older than the deadline, to be reported", "*/5 * * * *", "", time.Time{}, 30, minutes(6), minutes(5), 1},
		{"a deadline of ages is none", "*/5 * * * *", "", time.Time{}, math.MaxInt64, minutes(5), minutes(5), 1},
		{"a hundred and more", "* * * * *", "", time.Time{}, 0, minutes(500.5), minutes(500), missedMost + 1},
		{"a descriptor", "@hourly", "", time.Time{}, 0, minutes(90), minutes(60), 1},
		{"an interval counts from the last", "@every 7m", "", minutes(1), 0, minutes(20), minutes(15), 2},
		{"many intervals", "@every 1m", "", minutes(0.5), 0, minutes(1000), minutes(999.5), missedMost + 1},
		{"in Tokyo it is 21:00", "30 21 * * *", "Asia/Tokyo", time.Time{}, 0, minutes(45), minutes(30), 1},
		{"a date that never comes", "0 0 31 2 *", "", time.Time{}, 0, minutes(100), time.Time{}, 0},
	} {
		cron := cronOf(c.schedule, c.zone)
		if !c.served.IsZero() {
			cron.Status.LastScheduleTime = &metav1.Time{Time: c.served}
		}
		if c.deadline > 0 {
			cron.Spec.StartingDeadlineSeconds = &c.deadline
		}
		schedule, err := parse(&cron.Spec)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := unservedTimes(schedule, cron, c.now); !got.last.Equal(c.last) || got.missed != c.missed {
			t.Errorf("%s: %v, %d missed; want %v, %d", c.name, got.last, got.missed, c.last, c.missed)
		}
	}
}

// TestLatestBefore compares the search with a visit of every time.
func TestLatestBefore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, text := range []string{"*/7 * * * *", "0 3 * * 1-5", "* * 11 3 *", "15 14 1 * *"} {
		schedule, err := parse(&batchv1.CronJobSpec{Schedule: text})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			now := noon.Add(time.Duration(random.IntN(40*24*3600)) * time.Second)
			var want time.Time
			for at := schedule.Next(noon); !at.After(now); at = schedule.Next(at) {
				want = at
			}
			if want.IsZero() {
				continue
			}
			if got := latestBefore(schedule, noon, now); !got.Equal(want) {
				t.Fatalf("%s before %v: %v, want %v", text, now, got, want)
			}
		}
	}
}

func TestZoneOfAJob(t *testing.T) {
	cron := cronOf("30 21 * * *", "Asia/Tokyo")
	job := jobFor(cron, noon.Add(30*time.Minute))
	if got := job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]; got != "2026-03-10T21:30:00+09:00" {
		t.Errorf("scheduled for %s", got)
	}
	if job.Name != "c-29552430" {
		t.Errorf("called %s", job.Name)
	}
	if _, err := parse(&cronOf("* * * * *", "Mars/Olympus").Spec); err == nil {
		t.Error("a zone that is nowhere is accepted")
	}
}

// TestUnknownTimeZone: the event about it has a reason of its own.
func TestUnknownTimeZone(t *testing.T) {
	_, err := parse(&batchv1.CronJobSpec{Schedule: "* * * * *", TimeZone: new("Nowhere/Else")})
	if zone := (*zoneError)(nil); !errors.As(err, &zone) || !strings.HasPrefix(err.Error(), `invalid timeZone: "Nowhere/Else": `) {
		t.Errorf("parse: %v", err)
	}
}
