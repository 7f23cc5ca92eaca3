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

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
)

const workers = 4

var kind = batchv1.SchemeGroupVersion.WithKind("CronJob")

// Options configures a Controller.
type Options struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger receives what operators should see. Default: slog.Default().
	Logger *slog.Logger
}

// Controller is the CronJob controller.
type Controller struct {
	*controller.Controller
	crons   *informer.SharedInformer[*batchv1.CronJob]
	jobs    *ownership.Index[*batchv1.Job]
	api     client.Resource[*batchv1.CronJob]
	jobAPI  client.Resource[*batchv1.Job]
	events  *events.Recorder
	written *controller.WriteTracker
	now     func() time.Time
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, recorder *events.Recorder, opts Options) (*Controller, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	jobs, err := ownership.NewIndex(informer.For[*batchv1.Job](factory, informer.ListOptions{}))
	if err != nil {
		return nil, err
	}
	c := &Controller{
		crons:   informer.For[*batchv1.CronJob](factory, informer.ListOptions{}),
		jobs:    jobs,
		api:     client.For[*batchv1.CronJob](cl),
		jobAPI:  client.For[*batchv1.Job](cl),
		events:  recorder,
		written: controller.NewWriteTracker(),
		now:     opts.Now,
	}
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "cronjob", Workers: workers, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.crons, informer.HandlerFuncs[*batchv1.CronJob]{
		Add:    func(cron *batchv1.CronJob, _ bool) { c.Add(controller.KeyOf(cron)) },
		Update: func(_, cron *batchv1.CronJob) { c.Add(controller.KeyOf(cron)) },
		Delete: func(cron *batchv1.CronJob, _ bool) { c.written.Forget(cron.UID) },
	})
	controller.Owns[*batchv1.CronJob](c.Controller, jobs.Informer)
	return c, nil
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cron, ok := c.crons.Lister().Get(key.Namespace, key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	if err := c.written.Current(ctx, cron); err != nil {
		return controller.Result{}, err
	}
	owned, err := c.jobs.Owned(cron.UID)
	if err != nil {
		return controller.Result{}, err
	}
	update := cron.DeepCopy()
	if err := c.account(ctx, update, owned); err != nil {
		return controller.Result{}, err
	}
	var again time.Duration
	var failed error
	if cron.DeletionTimestamp == nil {
		again, failed = c.start(ctx, update, c.now())
		failed = errors.Join(failed, c.forgetOldest(ctx, update, owned))
	}
	return controller.After(again), errors.Join(failed, c.writeStatus(ctx, cron, update))
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
	c.written.Record(written)
	return nil
}
