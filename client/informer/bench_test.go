package informer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// flood is a server whose watch gives an event whenever it is asked, out of
// memory: updates of its pods in turn, count of them in all.
type flood struct {
	pods   []*corev1.Pod
	events []*corev1.Pod // states to send, in turn
	count  int
	begin  chan struct{}
}

// final are the labels of the last state of each pod, which every handler gets.
// When it has got all of them, no call is left.
var final = map[string]string{"final": "true"}

func newFlood(pods, count int) *flood {
	f := &flood{count: count, begin: make(chan struct{})}
	make := func(i, version int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "namespace-" + strconv.Itoa(i%50), Name: "pod-" + strconv.Itoa(i),
			UID: types.UID(strconv.Itoa(i)), ResourceVersion: strconv.Itoa(version),
		}}
	}
	for i := range pods {
		f.pods = append(f.pods, make(i, 1))
	}
	for i := range count {
		state := make(i%pods, i+2)
		if i >= count-pods {
			state.Labels = final
		}
		f.events = append(f.events, state)
	}
	return f
}

func (f *flood) List(context.Context, metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	list := &client.List[*corev1.Pod]{Items: append([]*corev1.Pod(nil), f.pods...)}
	list.ResourceVersion = "1"
	return list, nil
}

func (f *flood) Watch(ctx context.Context, _ metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	return &torrent{flood: f, ctx: ctx}, nil
}

type torrent struct {
	*flood
	ctx context.Context
	n   int
}

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

func (*torrent) Close() {}

// BenchmarkEvents is one event from the stream to all handlers. With
// MaxUnmergedEvents each handler is called for each event; otherwise a handler that
// is behind is called less.
func BenchmarkEvents(b *testing.B) {
	for _, handlers := range []int{1, 10} {
		for _, keep := range []bool{true, false} {
			b.Run(fmt.Sprintf("handlers=%d/unmerged=%v", handlers, keep), func(b *testing.B) {
				f := newFlood(10_000, b.N)
				finals := min(b.N, len(f.pods))
				i := New[*corev1.Pod]("pods", f, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
				var delivered atomic.Int64
				complete := make(chan struct{}, handlers)
				for range handlers {
					opts := HandlerOptions{}
					if keep {
						opts.MaxUnmergedEvents = b.N + 20_000
					}
					var n int64
					left := finals
					_, err := i.AddHandler(HandlerFuncs[*corev1.Pod]{Update: func(_, pod *corev1.Pod) {
						n++
						if pod.Labels == nil {
							return
						}
						if left--; left == 0 {
							delivered.Add(n)
							complete <- struct{}{}
						}
					}}, opts)
					if err != nil {
						b.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- i.Run(ctx) }()
				<-i.Synced()
				b.ReportAllocs()
				b.ResetTimer()
				close(f.begin)
				for range handlers {
					<-complete
				}
				b.StopTimer()
				b.ReportMetric(float64(delivered.Load())/float64(b.N*handlers), "calls/event")
				cancel()
				<-done
			})
		}
	}
}

// BenchmarkLateHandler is a handler that joins 100,000 objects; what the
// others wait for is AddHandler.
func BenchmarkLateHandler(b *testing.B) {
	f := newFlood(100_000, 0)
	i := New[*corev1.Pod]("pods", f, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	<-i.Synced()
	b.Run("AddHandler", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, err := i.AddHandler(HandlerFuncs[*corev1.Pod]{}, HandlerOptions{})
			if err != nil {
				b.Fatal(err)
			}
			<-r.Remove()
		}
	})
	b.Run("Synced", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, err := i.AddHandler(HandlerFuncs[*corev1.Pod]{}, HandlerOptions{})
			if err != nil {
				b.Fatal(err)
			}
			<-r.Synced()
			<-r.Remove()
		}
	})
	cancel()
	<-done
}
