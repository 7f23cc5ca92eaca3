package metrics_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/metrics"
	"github.com/levelwire/levelwire/client/workqueue"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape returns every sample of a collector: "name{label=value}" to value. A
// collector that contradicts itself fails the test.
func scrape(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			samples[strings.TrimPrefix(family.GetName(), "levelwire_")+labels(m)] = value(m)
		}
	}
	return samples
}

func labels(m *dto.Metric) string {
	var parts []string
	for _, l := range m.Label {
		parts = append(parts, l.GetName()+"="+l.GetValue())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	default:
		return float64(m.Histogram.GetSampleCount())
	}
}

func expect(t *testing.T, samples, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if got, ok := samples[name]; !ok || got != v {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, v)
		}
	}
}

func TestInformersShowHowTheyStand(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := levelwiretest.Start(t).Client(client.Options{})
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	collector := metrics.Informers(factory)
	if samples := scrape(t, collector); len(samples) != 0 {
		t.Errorf("a factory without informers shows %v", samples)
	}
	namespaces := informer.For[*corev1.Namespace](factory, informer.ListOptions{})
	informer.Metadata(factory, corev1.SchemeGroupVersion.WithResource("namespaces"), informer.ListOptions{})
	expect(t, scrape(t, collector), map[string]float64{
		"informer_synced{informer=namespaces}": 0, "informer_age_seconds{informer=namespaces}": -1,
		"informer_lists_total{cause=initial,informer=namespaces}": 0, "informer_synced{informer=namespaces (metadata)}": 0,
	})

	release := make(chan struct{})
	handlers := map[string]*informer.Registration{}
	for name, wait := range map[string]<-chan struct{}{"slow": release, "": nil} {
		for range 2 { // handlers that share a name are shown as one
			registration, err := namespaces.AddHandler(informer.HandlerFuncs[*corev1.Namespace]{
				Add: func(*corev1.Namespace, bool) {
					if wait != nil {
						<-wait
					}
				},
			}, informer.HandlerOptions{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			handlers[name] = registration
		}
	}
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	samples := scrape(t, collector)
	expect(t, samples, map[string]float64{
		"informer_objects{informer=namespaces}": 4, "informer_synced{informer=namespaces}": 1, "informer_gone{informer=namespaces}": 0,
		"informer_lists_total{cause=initial,informer=namespaces}":        1,
		"informer_lists_total{cause=expired,informer=namespaces}":        0,
		"informer_watches_total{informer=namespaces}":                    1,
		"informer_handler_calls_total{handler=slow,informer=namespaces}": 0,
	})
	if lag, age := samples["informer_handler_lag_seconds{handler=slow,informer=namespaces}"], samples["informer_age_seconds{informer=namespaces}"]; lag <= 0 || age < 0 {
		t.Errorf("a blocked handler lags by %v, the view is %v old", lag, age)
	}
	var size int64
	for _, namespace := range namespaces.Lister().List("", nil) {
		size += int64(namespace.Size())
	}
	if got := samples["informer_object_bytes{informer=namespaces}"]; got != float64(size) {
		t.Errorf("four objects of %d bytes are estimated at %v", size, got)
	}
	close(release)
	<-handlers["slow"].Synced()
	<-handlers["slow"].Remove()
	samples = scrape(t, collector)
	if busy := samples["informer_handler_busy_seconds_total{handler=slow,informer=namespaces}"]; busy <= 0 {
		t.Errorf("busy for %v", busy)
	}
}

// The estimate is from a sample when there are many.
func TestBytesAreEstimated(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := levelwiretest.Start(t).Client(client.Options{})
	api := client.For[*corev1.ConfigMap](c).Namespace("default")
	for range 300 {
		if _, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"},
			Data: map[string]string{"k": strings.Repeat("x", 1000)}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	typed := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"})
	dynamic := informer.Dynamic(factory, corev1.SchemeGroupVersion.WithResource("configmaps"), informer.ListOptions{Namespace: "default"})
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]int64{"typed": typed.EstimateBytes(), "dynamic": dynamic.EstimateBytes()} {
		if got < 300*1000 || got > 300*2000 {
			t.Errorf("%s: 300 objects of a bit more than 1,000 bytes are estimated at %d", name, got)
		}
	}
}

func TestQueueShowsItsWork(t *testing.T) {
	queue := workqueue.New(workqueue.Options[string]{})
	defer queue.ShutDown()
	collector := metrics.Queue("pods", queue.Stats)
	queue.Add("a")
	queue.Add("b")
	expect(t, scrape(t, collector), map[string]float64{
		"workqueue_depth{queue=pods}": 2, "workqueue_adds_total{queue=pods}": 2, "workqueue_wait_seconds{queue=pods}": 0,
	})
	key, _ := queue.Get(t.Context())
	expect(t, scrape(t, collector), map[string]float64{
		"workqueue_depth{queue=pods}": 1, "workqueue_working{queue=pods}": 1, "workqueue_wait_seconds{queue=pods}": 1,
	})
	queue.Done(key)
	expect(t, scrape(t, collector), map[string]float64{"workqueue_working{queue=pods}": 0, "workqueue_work_seconds{queue=pods}": 1})
}

// standing is a controller that stands as it says.
type standing struct{ stats controller.Stats }

func (standing) Name() string              { return "greeter" }
func (s standing) Stats() controller.Stats { return s.stats }

// Each call has one result; one that Consistent has put off is neither a success nor an
// error, and comes again without a time that it asked for.
func TestCallsAreCountedByResult(t *testing.T) {
	const total = "controller_runtime_reconcile_total{controller=greeter,result="
	expect(t, scrape(t, metrics.Controller(standing{controller.Stats{Successes: 1, Requeues: 2, PutOffs: 3, Failures: 4}})), map[string]float64{
		total + "success}": 1, total + "requeue_after}": 2, total + "requeue}": 3, total + "error}": 4,
	})
}

// The depth is shown by priority, of a bounded number of them, and a time series that
// was there once goes on with 0.
func TestQueueShowsItsDepthByPriority(t *testing.T) {
	queue := workqueue.New(workqueue.Options[int]{})
	defer queue.ShutDown()
	collector := metrics.Workqueue("pods", queue.Stats)
	depth := func(priority string) string {
		return "workqueue_depth{controller=pods,name=pods,priority=" + priority + "}"
	}
	expect(t, scrape(t, collector), map[string]float64{depth("0"): 0})
	for key, priority := range []int{0, -100, -100, 7} {
		queue.AddWith(key, workqueue.AddOptions{Priority: priority})
	}
	queue.AddWith(1, workqueue.AddOptions{Priority: 7}) // raised
	expect(t, scrape(t, collector), map[string]float64{depth("0"): 1, depth("-100"): 1, depth("7"): 2})
	for range 4 {
		key, _ := queue.Get(t.Context())
		queue.Done(key)
	}
	expect(t, scrape(t, collector), map[string]float64{depth("0"): 0, depth("-100"): 0, depth("7"): 0})

	const keys = 1000
	for key := range keys {
		queue.AddWith(key, workqueue.AddOptions{Priority: 1000 + key})
	}
	samples := scrape(t, collector)
	var series, sum float64
	for name, value := range samples {
		if strings.HasPrefix(name, "workqueue_depth{") {
			series, sum = series+1, sum+value
		}
	}
	if series != 26 || sum != keys || samples[depth("exceeded_cardinality_limit")] != keys-22 {
		t.Errorf("%v time series have %v keys, the last %v", series, sum, samples[depth("exceeded_cardinality_limit")])
	}
	for range keys {
		key, _ := queue.Get(t.Context())
		queue.Done(key)
	}
	expect(t, scrape(t, collector), map[string]float64{depth("1999"): 0, depth("exceeded_cardinality_limit"): 0})
}
