package garbage_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/controllermanager/internal/garbage"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

// counted counts the requests of a collector.
type counted struct {
	next          http.RoundTripper
	all, progress *atomic.Int64 // progress: those that ask how far a resource is
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.all.Add(1)
	q := r.URL.Query()
	if q.Has("watch") && len(q.Get("timeoutSeconds")) == 1 || q.Get("limit") == "1" {
		c.progress.Add(1)
	}
	return c.next.RoundTrip(r)
}

// BenchmarkOwnersDeletedAtOnce: owners without dependents are deleted in the foreground, and the collector has to know of every
// resource that it has none. It reports the requests for each owner, and how many of them ask how far a resource is.
func BenchmarkOwnersDeletedAtOnce(b *testing.B) {
	const owners, writers = 2000, 16
	s := levelwiretest.Start(b)
	config := s.UserConfig("collector", "system:masters")
	var all, progress atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &all, &progress} })
	connected, err := client.New(config, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	collector, err := garbage.New(connected, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- collector.Run(ctx) }()
	<-collector.Synced()
	configs := client.For[*corev1.ConfigMap](s.Client(client.Options{})).Namespace("default")
	each := func(do func(name string) error) {
		var group errgroup.Group
		group.SetLimit(writers)
		for i := range owners {
			group.Go(func() error { return do(fmt.Sprintf("owner-%d", i)) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	all.Store(0)
	progress.Store(0)
	foreground := metav1.DeletePropagationForeground
	for b.Loop() {
		b.StopTimer()
		each(func(name string) error {
			_, err := configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		})
		list, err := configs.List(ctx, metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		w, err := configs.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		each(func(name string) error {
			return configs.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground})
		})
		for gone := 0; gone < owners; {
			ev, err := w.Next()
			if err != nil {
				b.Fatal(err)
			}
			if ev.Type == apiwatch.Deleted && strings.HasPrefix(ev.Object.Name, "owner-") {
				gone++
			}
		}
		w.Close()
	}
	b.ReportMetric(float64(all.Load())/float64(b.N*owners), "requests/owner")
	b.ReportMetric(float64(progress.Load())/float64(b.N*owners), "progress/owner")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
