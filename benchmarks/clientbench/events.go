package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// measureEvents is what an event costs from the socket to all handlers.
func measureEvents(ctx context.Context, t task) (result, error) {
	t.Kubeconfig, t.Paged = "", true
	p, err := t.podInformer("")
	if err != nil {
		return nil, err
	}
	// Each handler gets the pods that exist, and then each event.
	all := newCountdown(t.Handlers, cannedPods+t.Count)
	for n := range t.Handlers {
		if err := p.add(all.handler(n)); err != nil {
			return nil, err
		}
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	m, err := start(t.Profile)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/begin?n=%d", t.Canned, t.Count), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	<-all.done
	u, err := m.stop()
	if err != nil {
		return nil, err
	}
	p.stop()
	return u.perEvent(t.Count), nil
}

func (u used) perEvent(n int) result {
	return result{
		"events per s": float64(n) / u.wall.Seconds(), "processor ns per event": float64(u.processor.Nanoseconds()) / float64(n),
		"bytes per event": u.bytes / float64(n), "allocations per event": u.allocs / float64(n),
	}
}

// countdown is done when each of some handlers has been called so many times.
type countdown struct {
	each int64
	left atomic.Int64
	n    []struct { // a cache line each
		calls int64
		_     [56]byte
	}
	done chan struct{}
}

func newCountdown(handlers, each int) *countdown {
	c := &countdown{each: int64(each), done: make(chan struct{})}
	c.n = make([]struct {
		calls int64
		_     [56]byte
	}, handlers)
	c.left.Store(int64(handlers))
	return c
}

func (c *countdown) handler(n int) func() {
	calls := &c.n[n].calls
	return func() {
		if *calls++; *calls == c.each && c.left.Add(-1) == 0 {
			close(c.done)
		}
	}
}

// measureMachinery is what an event costs that has been decoded already: the
// reflector, the queues and the index.
func measureMachinery(ctx context.Context, t task) (result, error) {
	states := make([]*corev1.Pod, 2*cannedPods)
	for i := range states {
		states[i] = workload.Pod(i%cannedPods, i >= cannedPods)
	}
	events := make([]*corev1.Pod, t.Count)
	for i := range events {
		p := *states[i%len(states)] // a state of its own, though its parts are shared
		p.ResourceVersion = fmt.Sprint(firstVersion + 1 + i)
		events[i] = &p
	}
	f := &flood{pods: states[:cannedPods], events: events, begin: make(chan struct{})}
	all := newCountdown(t.Handlers, cannedPods+t.Count)
	run := f.ours
	if t.Library == clientGo {
		run = f.theirs
	}
	stop, err := run(ctx, t, all)
	if err != nil {
		return nil, err
	}
	m, err := start(t.Profile)
	if err != nil {
		return nil, err
	}
	close(f.begin)
	<-all.done
	u, err := m.stop()
	if err != nil {
		return nil, err
	}
	stop()
	return u.perEvent(t.Count), nil
}

// flood is a source in memory whose watch gives an event whenever it is asked.
type flood struct {
	pods, events []*corev1.Pod
	begin        chan struct{}
}

func (f *flood) ours(ctx context.Context, t task, all *countdown) (func(), error) {
	i := informer.New("pods", reflector.ListerWatcher[*corev1.Pod](f), reflector.Options{PagedList: true})
	for n := range t.Handlers {
		called := all.handler(n)
		h := informer.HandlerFuncs[*corev1.Pod]{
			Add: func(*corev1.Pod, bool) { called() }, Update: func(_, _ *corev1.Pod) { called() },
		}
		opts := informer.HandlerOptions{}
		if t.MaxUnmergedEvents {
			opts.MaxUnmergedEvents = t.Count + 1
		}
		if _, err := i.AddHandler(h, opts); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	go func() { _ = i.Run(ctx) }()
	<-i.Synced()
	return func() { stop(); <-i.Done() }, nil
}

// List implements reflector.ListerWatcher.
func (f *flood) List(context.Context, metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	list := &client.List[*corev1.Pod]{Items: append([]*corev1.Pod(nil), f.pods...)}
	list.ResourceVersion = fmt.Sprint(firstVersion)
	return list, nil
}

// Watch implements reflector.ListerWatcher.
func (f *flood) Watch(ctx context.Context, _ metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	return &torrent{flood: f, ctx: ctx}, nil
}

type torrent struct {
	*flood
	ctx context.Context
	n   int
}

// Next implements reflector.Stream.
func (w *torrent) Next() (ev client.WatchEvent[*corev1.Pod], err error) {
	if w.n == 0 {
		select {
		case <-w.begin:
		case <-w.ctx.Done():
			return ev, io.EOF
		}
	}
	if w.n == len(w.events) {
		<-w.ctx.Done()
		return ev, io.EOF
	}
	w.n++
	return client.WatchEvent[*corev1.Pod]{Type: watch.Modified, Object: w.events[w.n-1]}, nil
}

// Close implements reflector.Stream.
func (*torrent) Close() {}

func (f *flood) theirs(ctx context.Context, t task, all *countdown) (func(), error) {
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(firstVersion)}}
			for _, p := range f.pods {
				list.Items = append(list.Items, *p)
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			return f.stream(ctx), nil
		},
	}
	i := toolscache.NewSharedIndexInformer(unstreamed{source}, &corev1.Pod{}, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	for n := range t.Handlers {
		called := all.handler(n)
		_, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { called() }, UpdateFunc: func(_, _ any) { called() }})
		if err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	toolscache.WaitForCacheSync(ctx.Done(), i.HasSynced)
	return func() { stop(); running.Wait() }, nil
}

// unstreamed has client-go ask for pages: the source has no streaming lists.
type unstreamed struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is what client-go asks.
func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

// stream sends the events as a decoder of client-go does: over a channel.
func (f *flood) stream(ctx context.Context) watch.Interface {
	events := make(chan watch.Event)
	w := watch.NewProxyWatcher(events)
	go func() {
		select {
		case <-f.begin:
		case <-ctx.Done():
			return
		}
		for _, p := range f.events {
			select {
			case events <- watch.Event{Type: watch.Modified, Object: p}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}
