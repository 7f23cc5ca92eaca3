package stormclients

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/benchmarks/herd"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// libraryTask is an informer of all pods, made by a library.
type libraryTask struct {
	Access  tested.Access
	Library string
}

// LibraryReport is what it has done since it was let go.
type LibraryReport struct {
	Equal              bool // its handlers got what they should
	After              time.Duration
	Lists, Differences int64 // requests, streaming lists among the former
	Bytes              int64
	CPU                time.Duration
}

// RunLibrary is the process of one informer.
func RunLibrary(ctx context.Context, p *process.Parent) error {
	var task libraryTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	l := &subject{network: network{open: make(chan struct{})}}
	l.network.release()
	start := map[string]func(context.Context, *rest.Config) error{ClientGo: l.theirs, OurLibrary: l.ours}[task.Library]
	config := &rest.Config{
		Host: task.Access.URL, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: task.Access.CA, CertData: task.Access.Cert, KeyData: task.Access.Key},
	}
	if err := start(ctx, config); err != nil {
		return fmt.Errorf("%s: %w", task.Library, err)
	}
	if err := p.Send(LibraryReport{}); err != nil {
		return err
	}
	return obey(p, func(o order) (any, error) {
		switch o.Do {
		case "cut":
			l.network.cut()
		case "open":
			if err := l.reset(); err != nil {
				return nil, err
			}
			l.network.release()
		case "expect":
			l.expect(o.Want)
		}
		return l.report()
	})
}

// subject is an informer that is looked at.
type subject struct {
	network            network
	lists, differences atomic.Int64

	mu    sync.Mutex
	holds herd.Content
	want  herd.Digest
	equal time.Time // since when it holds what it should; zero: it does not
	since time.Time // it was let go
	used  time.Duration
}

func (l *subject) set(pod *corev1.Pod) {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		return // it will never be equal, which is noticed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds.Set(herd.Key(pod.Namespace, pod.Name), version)
	l.judge()
}

func (l *subject) remove(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds.Remove(herd.Key(pod.Namespace, pod.Name))
	l.judge()
}

// judge notes whether it holds what it should. The lock is held.
func (l *subject) judge() {
	switch {
	case l.holds.Digest() != l.want:
		l.equal = time.Time{}
	case l.equal.IsZero():
		l.equal = time.Now()
	}
}

func (l *subject) expect(want herd.Digest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.want = want
	l.judge()
}

func (l *subject) reset() (err error) {
	l.lists.Store(0)
	l.differences.Store(0)
	l.network.received.Store(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Now()
	l.used, err = measure.OwnCPU()
	return err
}

func (l *subject) report() (LibraryReport, error) {
	used, err := measure.OwnCPU()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := LibraryReport{
		Equal: !l.equal.IsZero(), Lists: l.lists.Load(), Differences: l.differences.Load(),
		Bytes: l.network.received.Load(), CPU: used - l.used,
	}
	if r.Equal {
		r.After = max(l.equal.Sub(l.since), 0)
	}
	return r, err
}

// ours starts an informer of Levelwire's library, and waits until it has synced.
func (l *subject) ours(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{ContentType: client.Protobuf, Dial: l.network.dial, WrapTransport: l.counting})
	if err != nil {
		return err
	}
	factory := informer.NewFactory(c, informer.Options{})
	i := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	registration, err := i.AddHandler(informer.HandlerFuncs[*corev1.Pod]{
		Add:    func(pod *corev1.Pod, _ bool) { l.set(pod) },
		Update: func(_, pod *corev1.Pod) { l.set(pod) },
		Delete: func(pod *corev1.Pod, _ bool) { l.remove(pod) },
	}, informer.HandlerOptions{})
	if err != nil {
		return err
	}
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		return err
	}
	select {
	case <-registration.Synced():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// theirs starts one of client-go.
func (l *subject) theirs(ctx context.Context, config *rest.Config) error {
	config.Dial = l.network.dial
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	config.Wrap(l.counting)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(c, 0)
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { l.set(pod.(*corev1.Pod)) },
		UpdateFunc: func(_, pod any) { l.set(pod.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if missed, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = missed.Obj
			}
			l.remove(o.(*corev1.Pod))
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for !registration.HasSynced() {
		if err := tested.Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// counting counts requests by what they are.
func (l *subject) counting(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		switch {
		case strings.Contains(r.URL.Path, "/difference/"):
			l.differences.Add(1)
		case r.Method == http.MethodGet && (query.Get("watch") == "" || query.Get("sendInitialEvents") != ""):
			l.lists.Add(1)
		}
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// network is where connections come from. It can be cut: then connections end,
// and new ones have to wait.
type network struct {
	received atomic.Int64

	mu    sync.Mutex
	open  chan struct{} // closed while there is a network
	conns []net.Conn
}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, c)
	return &counted{c, &n.received}, nil
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = make(chan struct{})
	for _, c := range n.conns {
		_ = c.Close() // it may have ended by itself
	}
	n.conns = slices.Delete(n.conns, 0, len(n.conns))
}

func (n *network) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.open)
}

// counted is a connection whose bytes are counted.
type counted struct {
	net.Conn
	received *atomic.Int64
}

// Read implements net.Conn.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}
