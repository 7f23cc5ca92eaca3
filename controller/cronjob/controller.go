package cronjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/rest"
	"github.com/levelwire/levelwire/controller/ownership"
	"github.com/levelwire/levelwire/controller/reconcile"
)

const workers = 4

// behind is when to look again at the latest if an informer is late.
const behind = time.Second

var kind = batchv1.SchemeGroupVersion.WithKind("CronJob")

// Options configures a Controller.
type Options struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger receives what operators should see. Default: discard.
	Logger *slog.Logger
}

// Controller is the CronJob controller.
type Controller struct {
	loop     *reconcile.Loop
	crons    *informer.SharedInformer[*batchv1.CronJob]
	jobs     *ownership.Index[*batchv1.Job]
	api      rest.Resource[*batchv1.CronJob]
	jobAPI   rest.Resource[*batchv1.Job]
	events   *events.Recorder
	written  *reconcile.Versions
	informed []reconcile.Source
	now      func() time.Time
}

// New registers the controller with the factory's informers.
func New(client *rest.Client, factory *informer.Factory, recorder *events.Recorder, opts Options) (*Controller, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	jobs, err := ownership.NewIndex(informer.For[*batchv1.Job](factory, informer.ListOptions{}))
	if err != nil {
		return nil, err
	}
	c := &Controller{
		crons:   informer.For[*batchv1.CronJob](factory, informer.ListOptions{}),
		jobs:    jobs,
		api:     rest.For[*batchv1.CronJob](client),
		jobAPI:  rest.For[*batchv1.Job](client),
		events:  recorder,
		written: reconcile.NewVersions(),
		now:     opts.Now,
	}
	c.loop = reconcile.NewLoop("cronjob", workers, opts.Logger, c.reconcile)
	crons, err := c.crons.AddHandler(informer.HandlerFuncs[*batchv1.CronJob]{
		Add:    func(cron *batchv1.CronJob, _ bool) { c.loop.Add(reconcile.KeyOf(cron)) },
		Update: func(_, cron *batchv1.CronJob) { c.loop.Add(reconcile.KeyOf(cron)) },
		Delete: func(cron *batchv1.CronJob, _ bool) { c.written.Forget(cron.UID) },
	}, informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	ended, err := jobs.Informer.AddHandler(reconcile.Each(func(job *batchv1.Job) {
		if ref := metav1.GetControllerOfNoCopy(job); ref != nil && ref.Kind == kind.Kind {
			c.loop.Add(reconcile.Key{Namespace: job.Namespace, Name: ref.Name})
		}
	}), informer.HandlerOptions{})
	c.informed = []reconcile.Source{crons, ended}
	return c, err
}

// Run reconciles until ctx ends, once the caches are filled. It blocks.
func (c *Controller) Run(ctx context.Context) error {
	return c.loop.RunAfter(ctx, c.informed...)
}

func (c *Controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	cron, ok := c.crons.Lister().Get(key.Namespace, key.Name)
	if !ok {
		return 0, nil
	}
	if c.written.Behind(cron) {
		return behind, nil
	}
	owned, err := c.jobs.Owned(cron.UID)
	if err != nil {
		return 0, err
	}
	update := cron.DeepCopy()
	if err := c.account(ctx, update, owned); err != nil {
		return 0, err
	}
	var again time.Duration
	var failed error
	if cron.DeletionTimestamp == nil {
		again, failed = c.start(ctx, update, c.now())
		failed = errors.Join(failed, c.forgetOldest(ctx, update, owned))
	}
	return again, errors.Join(failed, c.writeStatus(ctx, cron, update))
}

func (c *Controller) writeStatus(ctx context.Context, cron, update *batchv1.CronJob) error {
	if equality.Semantic.DeepEqual(cron.Status, update.Status) {
		return nil
	}
	written, err := c.api.Namespace(cron.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	c.written.Wrote(written)
	return nil
}
