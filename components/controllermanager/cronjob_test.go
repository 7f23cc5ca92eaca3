package controller_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/cronjob"
)

// clock is the controller's. It stands still until the test sets it forward, so that no other
// time of a schedule comes meanwhile, however long the test takes.
type clock struct{ at atomic.Int64 } // in seconds of Unix

func (c *clock) now() time.Time { return time.Unix(c.at.Load(), 0) }

// startCron runs a CronJob controller alone: the test says what becomes of the
// Jobs.
func startCron(c *cluster) *clock {
	c.t.Helper()
	client, quiet := c.connect(), slog.New(slog.DiscardHandler)
	factory := informer.NewFactory(client, informer.Options{})
	stands := &clock{}
	stands.at.Store(time.Now().Unix())
	recorder := events.New(client, "test", events.Options{Logger: quiet})
	c.start(c.ctx, "events", recorder.Run)
	controller, err := cronjob.New(client, factory, recorder, cronjob.Options{Now: stands.now, Logger: quiet})
	if err != nil {
		c.t.Fatal(err)
	}
	factory.Start(c.ctx)
	c.start(c.ctx, "cronjob", func(ctx context.Context) error {
		defer factory.Shutdown()
		return controller.Run(ctx)
	})
	return stands
}

// createCron creates a CronJob and sets the clock to the moment at which the server has
// made it.
func (c *clock) createCron(t *cluster, cron *batchv1.CronJob) {
	t.t.Helper()
	c.at.Store(time.Now().Unix()) // back from where it was set for another one
	c.at.Store(create(t, in[*batchv1.CronJob](t), cron).CreationTimestamp.Unix())
}

// toNextMinute sets the clock to a moment behind exactly one more time of a schedule of each
// minute, and has the controller look at it.
func (c *clock) toNextMinute(t *cluster, name string) {
	t.t.Helper()
	const minute = 60
	c.at.Store((c.at.Load()/minute+1)*minute + 1)
	c.look(t, name)
}

// look has the controller look at the clock.
func (c *clock) look(t *cluster, name string) {
	t.t.Helper()
	change(t, in[*batchv1.CronJob](t), name, func(cron *batchv1.CronJob) {
		cron.Annotations = map[string]string{"looked-at": c.now().String()}
	})
}

func newCron(name string, policy batchv1.ConcurrencyPolicy) *batchv1.CronJob {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cron.Spec.Schedule, cron.Spec.ConcurrencyPolicy = "* * * * *", policy
	cron.Spec.JobTemplate.Labels = map[string]string{"cron": name}
	cron.Spec.JobTemplate.Spec.Template = podTemplate("work:1")
	cron.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = "Never"
	return cron
}

func running(n int) func(*batchv1.CronJob) bool {
	return func(cron *batchv1.CronJob) bool { return len(cron.Status.Active) == n }
}

func end(c *cluster, name string, as batchv1.JobConditionType) {
	c.t.Helper()
	jobs := in[*batchv1.Job](c)
	job, err := jobs.Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	now := metav1.Now()
	job.Status.StartTime = &now
	decided := batchv1.JobFailureTarget
	if as == batchv1.JobComplete {
		job.Status.CompletionTime, decided = &now, batchv1.JobSuccessCriteriaMet
	}
	for _, condition := range []batchv1.JobConditionType{decided, as} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: "True", LastTransitionTime: now})
	}
	if _, err := jobs.UpdateStatus(c.ctx, job, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func TestCronJobsPolicies(t *testing.T) {
	c := newCluster(t, 0)
	time := startCron(c)
	crons := in[*batchv1.CronJob](c)
	for name, want := range map[batchv1.ConcurrencyPolicy]int{batchv1.AllowConcurrent: 2, batchv1.ForbidConcurrent: 1, batchv1.ReplaceConcurrent: 1} {
		name, policy := strings.ToLower(string(name)), name
		time.createCron(c, newCron(name, policy))
		time.toNextMinute(c, name)
		first := await(c, crons, name, "one job", running(1))
		ref := first.Status.Active[0]
		job, err := in[*batchv1.Job](c).Get(c.ctx, ref.Name, metav1.GetOptions{})
		if err != nil || !metav1.IsControlledBy(job, first) || job.Labels["cron"] != name {
			t.Fatalf("%s: %+v, %v", name, job, err)
		}
		time.toNextMinute(c, name)
		if policy == batchv1.ForbidConcurrent {
			awaitEach(c, in[*corev1.Event](c), metav1.ListOptions{FieldSelector: "reason=JobAlreadyActive"}, "the refusal",
				func(all map[string]*corev1.Event) bool { return len(all) > 0 })
		}
		await(c, crons, name, "as its policy says", func(cron *batchv1.CronJob) bool {
			moved := len(cron.Status.Active) > 0 && cron.Status.Active[0].UID != ref.UID
			later := cron.Status.LastScheduleTime.After(first.Status.LastScheduleTime.Time)
			return running(want)(cron) && later == (policy != batchv1.ForbidConcurrent) && moved == (policy == batchv1.ReplaceConcurrent) &&
				cron.Annotations["looked-at"] != first.Annotations["looked-at"]
		})
	}
}

func TestCronJobKeepsSomeHistory(t *testing.T) {
	c := newCluster(t, 0)
	time := startCron(c)
	crons, jobs := in[*batchv1.CronJob](c), in[*batchv1.Job](c)
	cron := newCron("c", batchv1.ForbidConcurrent)
	cron.Spec.SuccessfulJobsHistoryLimit, cron.Spec.FailedJobsHistoryLimit = new(int32(1)), new(int32(0))
	time.createCron(c, cron)
	var names []string
	for _, as := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobComplete} {
		time.toNextMinute(c, "c")
		name := await(c, crons, "c", "a job", running(1)).Status.Active[0].Name
		names = append(names, name)
		end(c, name, as)
		await(c, crons, "c", "the job's end seen", running(0))
	}
	awaitEach(c, jobs, metav1.ListOptions{}, "the last success alone", func(all map[string]*batchv1.Job) bool {
		return slices.Equal(slices.Collect(maps.Keys(all)), names[2:])
	})
	if got := await(c, crons, "c", "there", running(0)); got.Status.LastSuccessfulTime == nil {
		t.Error("lastSuccessfulTime is not set")
	}
}

func TestSuspendedCronJobRests(t *testing.T) {
	c := newCluster(t, 0)
	time := startCron(c)
	crons := in[*batchv1.CronJob](c)
	for _, name := range []string{"resting", "awake"} {
		cron := newCron(name, batchv1.AllowConcurrent)
		cron.Spec.Suspend = new(name == "resting")
		time.createCron(c, cron)
	}
	time.toNextMinute(c, "resting")
	time.look(c, "awake")
	await(c, crons, "awake", "one job", running(1))
	if cron := await(c, crons, "resting", "no job", running(0)); cron.Status.LastScheduleTime != nil {
		t.Errorf("a suspended one was served: %+v", cron.Status)
	}
	change(c, crons, "resting", func(cron *batchv1.CronJob) { *cron.Spec.Suspend = false })
	await(c, crons, "resting", "one job", running(1))
}

// TestCronJobThatNeverComes: a schedule without a time says so in an event.
func TestCronJobThatNeverComes(t *testing.T) {
	c := newCluster(t, 0)
	time := startCron(c)
	cron := newCron("never", batchv1.AllowConcurrent)
	cron.Spec.Schedule = "0 0 31 2 *"
	time.createCron(c, cron)
	awaitEach(c, in[*corev1.Event](c), metav1.ListOptions{}, "an event about it", func(all map[string]*corev1.Event) bool {
		for _, event := range all {
			if event.InvolvedObject.Name == "never" && event.Reason == "InvalidSchedule" && event.Type == corev1.EventTypeWarning {
				return true
			}
		}
		return false
	})
}
