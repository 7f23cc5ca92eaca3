package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// pods is an informer of all pods, of either library.
type pods struct {
	// add adds a handler before the start.
	add func(called func()) error
	// run starts the informer and returns when it holds all pods and its
	// handlers got them.
	run func(ctx context.Context) error
	// stop ends it.
	stop func()
	// len is the number of pods it holds.
	len  func() int
	wire *wire
}

// config is how to reach the task's server: the real one, or the stub.
func (t task) config() (*rest.Config, error) {
	if t.Kubeconfig == "" {
		return &rest.Config{Host: t.Canned, QPS: -1}, nil
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", t.Kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return cfg, nil
}

// podInformer returns the task's informer. dir, unless empty, is where ours
// keeps its objects on disk.
func (t task) podInformer(dir string) (*pods, error) {
	cfg, err := t.config()
	if err != nil {
		return nil, err
	}
	if t.Library == clientGo {
		return t.theirPods(cfg)
	}
	return t.ourPods(cfg, dir)
}

// ourPods uses Levelwire's library.
func (t task) ourPods(cfg *rest.Config, dir string) (*pods, error) {
	w := &wire{}
	opts := client.Options{Dial: w.dial}
	if t.Protobuf {
		opts.ContentType = client.Protobuf
	}
	c, err := client.New(cfg, opts)
	if err != nil {
		return nil, err
	}
	disk := informer.DiskOptions{}
	if dir != "" {
		disk = informer.DiskOptions{Directory: dir, Interval: -1}
	}
	factory := informer.NewFactory(c, informer.Options{Reflector: reflector.Options{PagedList: t.Paged}, Disk: disk, CompressObjects: t.Compressed})
	i := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	var handlers []*informer.Registration
	return &pods{
		add: func(called func()) error {
			h := informer.HandlerFuncs[*corev1.Pod]{
				Add:    func(*corev1.Pod, bool) { called() },
				Update: func(_, _ *corev1.Pod) { called() },
				Delete: func(*corev1.Pod, bool) { called() },
			}
			opts := informer.HandlerOptions{}
			if t.MaxUnmergedEvents {
				opts.MaxUnmergedEvents = t.Count + 1
			}
			r, err := i.AddHandler(h, opts)
			handlers = append(handlers, r)
			return err
		},
		run: func(ctx context.Context) error {
			factory.Start(ctx)
			if err := factory.WaitForSync(ctx); err != nil {
				return err
			}
			for _, h := range handlers {
				<-h.Synced()
			}
			return nil
		},
		stop: factory.Shutdown,
		len:  i.Lister().Len,
		wire: w,
	}, nil
}

// theirPods uses client-go. Streaming lists are its default; the parent sets
// the environment for pages.
func (t task) theirPods(cfg *rest.Config) (*pods, error) {
	w := &wire{}
	cfg.Dial = w.dial
	if t.Protobuf {
		cfg.ContentType = protobufType
		cfg.AcceptContentTypes = protobufType + ",application/json"
	} else {
		cfg.ContentType = "application/json"
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(c, 0)
	i := factory.Core().V1().Pods().Informer()
	var handlers []toolscache.ResourceEventHandlerRegistration
	var cancel context.CancelFunc
	return &pods{
		add: func(called func()) error {
			r, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { called() },
				UpdateFunc: func(_, _ any) { called() },
				DeleteFunc: func(any) { called() },
			})
			handlers = append(handlers, r)
			return err
		},
		run: func(ctx context.Context) error {
			ctx, cancel = context.WithCancel(ctx)
			factory.Start(ctx.Done())
			synced := []toolscache.InformerSynced{i.HasSynced}
			for _, h := range handlers {
				synced = append(synced, h.HasSynced)
			}
			for _, done := range synced {
				// client-go's own WaitForCacheSync looks ten times a second,
				// which would be a part of every short measurement.
				for !done() && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
			}
			return ctx.Err()
		},
		stop: func() { cancel(); factory.Shutdown() },
		len:  func() int { return len(i.GetStore().ListKeys()) },
		wire: w,
	}, nil
}

// measureSync is how an informer gets its first state.
func measureSync(ctx context.Context, t task) (result, error) {
	return t.measureStart(ctx, "")
}

// measureStart is an informer with one handler from its start until it has
// synced, with or without a file to begin with.
func (t task) measureStart(ctx context.Context, dir string) (result, error) {
	p, err := t.podInformer(dir)
	if err != nil {
		return nil, err
	}
	if err := p.add(func() {}); err != nil {
		return nil, err
	}
	m, err := start(t.Profile)
	if err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	u, err := m.stop()
	if err != nil {
		return nil, err
	}
	n := p.len()
	if n != t.Count {
		return nil, fmt.Errorf("%s holds %d pods, not %d", t.Library, n, t.Count)
	}
	r := result{
		"processor s": u.processor.Seconds(), "wall s": u.wall.Seconds(),
		"allocated MB": u.bytes / 1e6, "allocations per object": u.allocs / float64(n),
		"live bytes per object": m.live() / float64(n), "received MB": float64(p.wire.received.Load()) / 1e6,
	}
	if r["peak MB"], err = peakMemory(); err != nil {
		return nil, err
	}
	p.stop()
	return r, nil
}

// save fills the file that restart begins with.
func save(ctx context.Context, t task) (result, error) {
	p, err := t.podInformer(t.Dir)
	if err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	p.stop()
	entries, err := os.ReadDir(t.Dir)
	if err != nil {
		return nil, err
	}
	if len(entries) != 1 {
		return nil, errors.New("the informer has not saved its objects")
	}
	return result{}, nil
}

// measureRestart is an informer that begins with a file, when client-go has to
// list.
func measureRestart(ctx context.Context, t task) (result, error) {
	if t.Library == clientGo {
		t.Dir = ""
	}
	return t.measureStart(ctx, t.Dir)
}

// measureIdle is what informers cost that have nothing to do.
func measureIdle(ctx context.Context, t task) (result, error) {
	cfg, err := t.config()
	if err != nil {
		return nil, err
	}
	m, err := start(t.Profile)
	if err != nil {
		return nil, err
	}
	before := goroutines()
	var stop func()
	if t.Library == clientGo {
		stop, err = t.theirIdle(ctx, cfg)
	} else {
		stop, err = t.ourIdle(ctx, cfg)
	}
	if err != nil {
		return nil, err
	}
	n := float64(t.Count)
	r := result{"goroutines per informer": float64(goroutines()-before) / n, "live bytes per informer": m.live() / n}
	r["stack bytes per informer"] = stacks() / n
	if _, err = m.stop(); err != nil {
		return nil, err
	}
	stop()
	return r, nil
}

// selector selects nothing, and something else for each informer.
func selector(i int) string { return fmt.Sprintf("informer=%d", i) }

func (t task) ourIdle(ctx context.Context, cfg *rest.Config) (func(), error) {
	c, err := client.New(cfg, client.Options{ContentType: client.Protobuf})
	if err != nil {
		return nil, err
	}
	factory := informer.NewFactory(c, informer.Options{})
	for n := range t.Count {
		i := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{LabelSelector: selector(n)})
		for range t.Handlers {
			if _, err := i.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{}, informer.HandlerOptions{}); err != nil {
				return nil, err
			}
		}
	}
	factory.Start(ctx)
	return factory.Shutdown, factory.WaitForSync(ctx)
}

func (t task) theirIdle(ctx context.Context, cfg *rest.Config) (func(), error) {
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	for n := range t.Count {
		factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector(n) }))
		i := factory.Core().V1().ConfigMaps().Informer()
		for range t.Handlers {
			if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
				stop()
				return nil, err
			}
		}
		factory.Start(ctx.Done())
		for !i.HasSynced() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	return stop, nil
}
