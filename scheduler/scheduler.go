package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/rest"
	"github.com/levelwire/levelwire/client/workqueue"
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

// Scheduler binds pods to nodes, one decision at a time: decisions are cheap
// and each sees the room that the one before it took. Bindings travel to the
// API server concurrently.
type Scheduler struct {
	opts    Options
	log     *slog.Logger
	factory *informer.Factory
	pods    *informer.SharedInformer[*corev1.Pod]
	nodes   *informer.SharedInformer[*corev1.Node]
	binding rest.Resource[*corev1.Pod]
	events  *events.Recorder
	queue   *workqueue.Queue[types.NamespacedName]
	ledger  *ledger
	binders chan struct{} // one slot per binding on its way
	// handlers fill the ledger. Nothing is decided before they have seen all
	// there is: room that is taken would look free.
	handlers []*informer.Registration

	mu sync.Mutex
	// rooms counts the times room has appeared, so that a decision made
	// meanwhile is not taken for one about the present.
	rooms uint64
	// waiting are the pods that fit nowhere, to be tried again when room
	// appears. Bounded by the pods that exist.
	waiting map[types.NamespacedName]struct{}
}

// New makes a scheduler that reaches the API server through client.
func New(client *rest.Client, opts Options) (*Scheduler, error) {
	opts.ensureDefaults()
	s := &Scheduler{
		opts:    opts,
		log:     opts.Logger,
		factory: informer.NewFactory(client, informer.Options{Logger: opts.Logger}),
		binding: rest.For[*corev1.Pod](client),
		events:  events.New(client, opts.Name, "", opts.Logger),
		queue:   workqueue.New(workqueue.Options[types.NamespacedName]{}),
		ledger:  newLedger(),
		binders: make(chan struct{}, opts.Binders),
		waiting: map[types.NamespacedName]struct{}{},
	}
	s.pods = informer.For[*corev1.Pod](s.factory, informer.ListOptions{})
	s.nodes = informer.For[*corev1.Node](s.factory, informer.ListOptions{})
	pods, err := s.pods.AddHandler(s.podHandler(), informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := s.nodes.AddHandler(s.nodeHandler(), informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	s.handlers = []*informer.Registration{pods, nodes}
	return s, nil
}

// Run schedules until ctx ends. It blocks.
func (s *Scheduler) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	group.Go(func() { s.events.Run(ctx) })
	s.factory.Start(ctx)
	defer s.factory.Shutdown()
	if err := s.factory.WaitForSync(ctx); err != nil {
		return err
	}
	for _, handler := range s.handlers {
		select {
		case <-handler.Synced():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.log.Info("scheduler is running", "pods", len(s.pods.Lister().List("", nil)), "nodes", len(s.nodes.Lister().List("", nil)))
	defer s.queue.ShutDown()
	for {
		key, ok := s.queue.Get(ctx)
		if !ok {
			return nil
		}
		s.schedule(ctx, key, &group)
		s.queue.Done(key)
	}
}

// schedule decides where one pod goes and starts its binding.
func (s *Scheduler) schedule(ctx context.Context, key types.NamespacedName, bindings *sync.WaitGroup) {
	pod, ok := s.pods.Lister().Get(key.Namespace, key.Name)
	if !ok || !s.responsible(pod) || s.ledger.charged(pod.UID) {
		return
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		return // an update that removes the gates brings the pod back
	}
	rooms := s.roomsSeen()
	node, why := s.place(pod)
	if node == "" {
		s.postpone(ctx, key, pod, why, rooms)
		return
	}
	if !s.ledger.assume(pod, node) {
		return
	}
	select {
	case s.binders <- struct{}{}:
	case <-ctx.Done():
		return
	}
	bindings.Go(func() {
		defer func() { <-s.binders }()
		s.bind(ctx, pod, node)
	})
}

// place returns the best node, or why there is none.
func (s *Scheduler) place(pod *corev1.Pod) (node, why string) {
	request := newRequest(pod)
	refusals := map[string]int{}
	total, best := 0, 0.0
	s.ledger.each(func(candidate *corev1.Node, taken *amounts) {
		total++
		if reason := request.refusal(candidate, taken); reason != "" {
			refusals[reason]++
			return
		}
		// Names break ties, so that a decision can be repeated.
		score := request.score(candidate, taken)
		if node == "" || score > best || score == best && candidate.Name < node {
			node, best = candidate.Name, score
		}
	})
	if node == "" {
		return "", summarize(total, refusals)
	}
	return node, ""
}

// retryUnschedulable is how long a pod that fits nowhere waits at most, in
// case an event that made room did not look like one.
const retryUnschedulable = time.Minute

// postpone lets a pod wait for room. If some has appeared since rooms, the
// pod is tried again at once: whoever made it did not find the pod waiting.
func (s *Scheduler) postpone(ctx context.Context, key types.NamespacedName, pod *corev1.Pod, why string, rooms uint64) {
	s.mu.Lock()
	if s.rooms != rooms {
		s.mu.Unlock()
		s.queue.Add(key)
		return
	}
	s.waiting[key] = struct{}{}
	s.mu.Unlock()
	s.queue.AddAfter(key, retryUnschedulable)
	if err := s.reportUnschedulable(ctx, pod, why); err != nil && ctx.Err() == nil {
		s.log.Warn("pod condition not written", "pod", key, "error", err)
	}
}

func (s *Scheduler) roomsSeen() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rooms
}

// retryWaiting queues every pod that fitted nowhere, as room has appeared.
func (s *Scheduler) retryWaiting() {
	s.mu.Lock()
	s.rooms++
	waiting := s.waiting
	s.waiting = map[types.NamespacedName]struct{}{}
	s.mu.Unlock()
	for key := range waiting {
		s.queue.Add(key)
	}
}

func (s *Scheduler) responsible(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.Spec.SchedulerName == s.opts.Name && pod.DeletionTimestamp == nil && !ended(pod)
}
