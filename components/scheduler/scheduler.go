package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
)

// Options configures a Scheduler.
type Options struct {
	// Name is the schedulerName of the pods it takes care of. Default
	// "default-scheduler".
	Name string
	// Binders is how many bindings may be on their way at once. Default 16.
	Binders int
	// Logger receives what happens. Default: slog.Default().
	Logger *slog.Logger
}

func (o *Options) ensureDefaults() {
	if o.Name == "" {
		o.Name = corev1.DefaultSchedulerName
	}
	if o.Binders <= 0 {
		o.Binders = 16
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Scheduler binds pods to nodes, one decision at a time and the more important
// pod first: decisions are cheap and each sees the room that the one before it
// took. Bindings travel to the
// API server concurrently.
type Scheduler struct {
	opts    Options
	log     *slog.Logger
	factory *informer.Factory
	pods    *informer.SharedInformer[*corev1.Pod]
	nodes   *informer.SharedInformer[*corev1.Node]
	budgets *informer.SharedInformer[*policyv1.PodDisruptionBudget]
	podAPI  client.Resource[*corev1.Pod]
	events  *events.Recorder
	loop    *controller.Controller
	ledger  *ledger
	binders chan struct{} // one slot per binding on its way
	binding sync.WaitGroup

	refused refusals // used by the loop's one worker
	futile  refusals // for which no preemption makes room; the same
	waiting *waitlist
}

// New makes a scheduler that reaches the API server through client.
func New(c *client.Client, opts Options) (*Scheduler, error) {
	opts.ensureDefaults()
	s := &Scheduler{
		opts:    opts,
		log:     opts.Logger,
		factory: informer.NewFactory(c, informer.Options{Logger: opts.Logger}),
		podAPI:  client.For[*corev1.Pod](c),
		events:  events.New(c, opts.Name, events.Options{Logger: opts.Logger}),
		ledger:  newLedger(),
		binders: make(chan struct{}, opts.Binders),
		waiting: newWaitlist(),
	}
	s.pods = informer.For[*corev1.Pod](s.factory, informer.ListOptions{})
	s.nodes = informer.For[*corev1.Node](s.factory, informer.ListOptions{})
	s.budgets = informer.For[*policyv1.PodDisruptionBudget](s.factory, informer.ListOptions{})
	var err error
	// One worker, and the more important pod always first. Nothing is decided
	// before the handlers have filled the ledger: room that is taken would look
	// free.
	s.loop, err = controller.New(s.schedule, controller.Options{Name: opts.Name, FairShare: -1, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	controller.Handle(s.loop, s.pods, s.podHandler())
	controller.Handle(s.loop, s.nodes, s.nodeHandler())
	s.loop.RequireSync("poddisruptionbudgets", s.budgets)
	return s, nil
}

// Run schedules until ctx ends. It blocks.
func (s *Scheduler) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	group.Go(func() { _ = s.events.Run(ctx) })
	group.Go(func() { s.keepRetrying(ctx) })
	group.Go(func() {
		select {
		case <-s.loop.Synced():
			s.log.Info("scheduler is running", "pods", s.pods.Lister().Len(), "nodes", s.nodes.Lister().Len())
		case <-ctx.Done():
		}
	})
	defer s.binding.Wait()
	return controller.Run(ctx, controller.RunOptions{Factory: s.factory}, s.loop)
}

// schedule decides where one pod goes and starts its binding.
func (s *Scheduler) schedule(ctx context.Context, key controller.Key) (controller.Result, error) {
	pod, ok := s.pods.Lister().Get(key.Namespace, key.Name)
	if !ok || !s.responsible(pod) || s.ledger.charged(pod.UID) {
		s.waiting.forget(key)
		return controller.Result{Pending: true}, nil
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		return controller.Result{}, nil // an update that removes the gates brings the pod back
	}
	rooms := s.waiting.roomsSeen()
	node, why := s.decide(pod, rooms)
	if node == "" {
		ended, err := s.preempt(ctx, pod, rooms)
		if err != nil {
			return controller.Result{}, err
		}
		return s.postpone(ctx, pod, why, rooms, ended)
	}
	nominated := s.ledger.nominatedFor(pod.UID)
	if !s.ledger.assume(pod, node) {
		return controller.Result{Pending: true}, nil
	}
	if nominated != "" && nominated != node {
		s.retryWaiting() // no room is kept free there any more
	}
	select {
	case s.binders <- struct{}{}:
	case <-ctx.Done():
		return controller.Result{}, ctx.Err()
	}
	s.binding.Go(func() {
		defer func() { <-s.binders }()
		s.bind(ctx, pod, node, nominated == node)
	})
	return controller.Result{Pending: true}, nil
}

// decide is place, but looks at no node if a pod like this one has been refused since room
// last appeared.
func (s *Scheduler) decide(pod *corev1.Pod, rooms uint64) (node, why string) {
	if why := tooMany(&pod.Spec); why != "" {
		return "", why
	}
	request, nodes := newRequest(pod), s.ledger.nodeChanges()
	if s.ledger.nominatedFor(pod.UID) != "" {
		return s.place(&request) // for it, there may be room where there is none for those that are like it
	}
	if why, ok := s.refused.find(&request, rooms, nodes); ok {
		return "", why
	}
	if node, why = s.place(&request); node == "" {
		s.refused.add(&request, rooms, nodes, why)
	}
	return node, why
}

// place returns the best node, or why there is none.
func (s *Scheduler) place(request *request) (node, why string) {
	refusals := map[string]int{}
	total, best := 0, 0.0
	s.ledger.each(func(candidate *account) {
		total++
		if reason := request.refusal(candidate); reason != "" {
			refusals[reason]++
			return
		}
		// Names break ties, so that a decision can be repeated.
		score := request.score(candidate)
		if name := candidate.node.Name; node == "" || score > best || score == best && name < node {
			node, best = name, score
		}
	})
	if node == "" {
		return "", summarize(total, refusals)
	}
	return node, ""
}

// retryUnschedulable is how often all pods that fit nowhere are tried again, in case an
// event that made room did not look like one: kube-scheduler's default.
const retryUnschedulable = 5 * time.Minute

// keepRetrying tries pods that fit nowhere again from time to time, and those that room has appeared for when their
// back-off is over, until ctx ends.
func (s *Scheduler) keepRetrying(ctx context.Context) {
	all := time.NewTicker(retryUnschedulable)
	defer all.Stop()
	first := time.NewTimer(retryUnschedulable)
	defer first.Stop()
	for {
		if after := s.waiting.next(s.loop.AddPriority); after > 0 {
			first.Reset(after)
		}
		select {
		case <-first.C:
		case <-s.waiting.earlier:
		case <-all.C:
			s.retryWaiting()
		case <-ctx.Done():
			return
		}
	}
}

// postpone lets a pod wait for room.
func (s *Scheduler) postpone(ctx context.Context, pod *corev1.Pod, why string, rooms uint64, ended bool) (controller.Result, error) {
	key := controller.KeyOf(pod)
	if s.waiting.refuse(key, priority(pod), rooms) {
		s.loop.AddPriority(key, priority(pod))
		return controller.Result{Pending: true}, nil
	}
	if err := s.reportUnschedulable(ctx, pod, why, ended); err != nil {
		return controller.Result{}, fmt.Errorf("write the pod's condition: %w", err)
	}
	return controller.Result{}, nil // until retryWaiting
}

// retryWaiting queues the pods that fitted nowhere, as room has appeared.
func (s *Scheduler) retryWaiting() { s.waiting.room(s.loop.AddPriority) }

func (s *Scheduler) responsible(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.Spec.SchedulerName == s.opts.Name && pod.DeletionTimestamp == nil && !ended(pod)
}
