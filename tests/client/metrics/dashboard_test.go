package metrics_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/client/metrics"
	"github.com/levelwire/levelwire/client/webhook"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
)

const dashboard = "../../../docs/operators/grafana-controllers.json"

// program runs a controller with all collectors, has it handle one object and
// fail once, and returns what its registry gathers.
func program(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	requests := metrics.NewRequests()
	c := levelwiretest.Start(t).Client(client.Options{Observer: requests})
	factory := informer.NewFactory(c, informer.Options{})
	maps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default", FieldSelector: "metadata.name=a"})
	calls, called := 0, make(chan struct{})
	ctl, err := controller.New(func(context.Context, controller.Key) (controller.Result, error) {
		switch calls++; calls {
		case 1:
			panic("a bug")
		case 2:
			return controller.After(time.Millisecond), nil
		case 3:
			close(called)
		}
		return controller.Result{}, nil
	}, controller.Options{Name: "greeter", Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	controller.For(ctl, maps)
	elector, err := leader.New(c, leader.Options{Namespace: "default", Name: "greeter"})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(requests, metrics.Informers(factory), metrics.Controller(ctl), metrics.Leader("greeter", elector.Stats),
		metrics.Webhooks(func() []webhook.Stats {
			return []webhook.Stats{{Path: "/validate", InFlight: 1, Succeeded: 2, Rejected: 3, Failed: 4, Panics: 1}}
		}),
		metrics.Certificates(func() webhook.CertificateStats { return webhook.CertificateStats{Reads: 5, Errors: 1} }))

	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(running, controller.RunOptions{Factory: factory, Leader: elector}, ctl)
	}()
	pods := client.For[*corev1.Pod](c).Namespace("default")
	if _, err := pods.Get(ctx, "none", metav1.GetOptions{}); err == nil {
		t.Error("there is a pod")
	}
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(ctx, created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-called
	<-ctl.Synced()
	testwait.Stable(t, "the third call returns", func() (any, bool) { n := ctl.Stats().Queue.Done; return n, n >= 3 })
	requests.AttemptDone(client.AttemptInfo{Method: "GET", Host: "here", Number: 2, Code: 200}) // nothing was repeated so far
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// sample returns the value of the family's metric with the labels.
func sample(t *testing.T, families map[string]*dto.MetricFamily, name, labelled string) float64 {
	t.Helper()
	for _, m := range families[name].GetMetric() {
		if labels(m) == labelled {
			return value(m)
		}
	}
	t.Errorf("no %s%s: %v", name, labelled, families[name])
	return -1
}

func TestDashboardAsksForWhatIsExported(t *testing.T) {
	families := program(t)
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"controller_runtime_reconcile_total", "{controller=greeter,result=success}", 1},
		{"controller_runtime_reconcile_total", "{controller=greeter,result=requeue_after}", 1},
		{"controller_runtime_reconcile_total", "{controller=greeter,result=error}", 1},
		{"controller_runtime_reconcile_total", "{controller=greeter,result=requeue}", 0},
		{"controller_runtime_reconcile_errors_total", "{controller=greeter}", 1},
		{"controller_runtime_reconcile_panics_total", "{controller=greeter}", 1},
		{"controller_runtime_reconcile_timeouts_total", "{controller=greeter}", 0},
		{"controller_runtime_webhook_panics_total", "{webhook=/validate}", 1},
		{"controller_runtime_terminal_reconcile_errors_total", "{controller=greeter}", 0},
		{"controller_runtime_reconcile_time_seconds", "{controller=greeter}", 3},
		{"controller_runtime_max_concurrent_reconciles", "{controller=greeter}", 3},
		{"controller_runtime_active_workers", "{controller=greeter}", 0},
		{"levelwire_controller_conflicts_total", "{controller=greeter}", 0},
		{"levelwire_controller_synced", "{controller=greeter}", 1},
		{"workqueue_depth", "{controller=greeter,name=greeter,priority=0}", 0},
		{"workqueue_adds_total", "{controller=greeter,name=greeter}", 3},
		{"workqueue_retries_total", "{controller=greeter,name=greeter}", 2},
		{"workqueue_queue_duration_seconds", "{controller=greeter,name=greeter}", 3},
		{"leader_election_master_status", "{name=greeter}", 1},
		{"controller_runtime_webhook_requests_total", "{code=200,webhook=/validate}", 2},
		{"controller_runtime_webhook_requests_total", "{code=500,webhook=/validate}", 4},
		{"controller_runtime_webhook_requests_in_flight", "{webhook=/validate}", 1},
		{"certwatcher_read_certificate_total", "{}", 5},
		{"certwatcher_read_certificate_errors_total", "{}", 1},
		{"leader_election_slowpath_total", "{name=greeter}", 0},
		{"levelwire_leader_acquired_total", "{name=greeter}", 1},
	} {
		if got := sample(t, families, c.name, c.labels); got != c.want {
			t.Errorf("%s%s is %v, want %v", c.name, c.labels, got, c.want)
		}
	}

	queries := dashboardQueries(t)
	if len(queries) < 20 {
		t.Errorf("%d queries", len(queries))
	}
	for _, query := range queries {
		checkQuery(t, families, query)
	}
}

// Requests: a refused one and a created object, by code, method and host.
func TestRequestsAreCountedUnderTheirKnownNames(t *testing.T) {
	requests := metrics.NewRequests()
	server := levelwiretest.Start(t)
	c := server.Client(client.Options{Observer: requests})
	ctx := t.Context()
	if _, err := client.For[*corev1.Pod](c).Namespace("default").Get(ctx, "none", metav1.GetOptions{}); err == nil {
		t.Error("there is a pod")
	}
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(ctx, created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watch, err := client.For[*corev1.Pod](c).Namespace("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch.Close()
	requests.AttemptDone(client.AttemptInfo{Method: "GET", Host: "away", Number: 1})
	requests.AttemptDone(client.AttemptInfo{Method: "GET", Host: "away", Number: 2, Code: 200, LimiterWait: time.Second})
	_, host, _ := strings.Cut(c.Host(), "://")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(requests)
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]*dto.MetricFamily{}
	for _, f := range gathered {
		families[f.GetName()] = f
	}
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"rest_client_requests_total", "{code=404,host=" + host + ",method=GET}", 1},
		{"rest_client_requests_total", "{code=200,host=" + host + ",method=GET}", 1}, // the watch
		{"rest_client_requests_total", "{code=201,host=" + host + ",method=POST}", 1},
		{"rest_client_requests_total", "{code=<error>,host=away,method=GET}", 1},
		{"rest_client_request_retries_total", "{code=200,host=away,verb=GET}", 1},
		{"rest_client_request_duration_seconds", "{host=" + host + ",verb=GET}", 1}, // not the watch
		{"rest_client_request_size_bytes", "{host=" + host + ",verb=POST}", 1},
		{"rest_client_response_size_bytes", "{host=" + host + ",verb=POST}", 1},
		{"rest_client_rate_limiter_duration_seconds", "{host=away,verb=GET}", 2},
	} {
		if got := sample(t, families, c.name, c.labels); got != c.want {
			t.Errorf("%s%s is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

// dashboardQueries returns every query of the dashboard: of panels and of
// variables.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	data, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, variable := range board.Templating.List {
		var query struct{ Query string }
		if json.Unmarshal(variable.Query, &query) == nil {
			queries = append(queries, query.Query)
		}
	}
	return queries
}

var (
	grouping  = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
	selection = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matched   = regexp.MustCompile(`([a-z_]+)(?:=~|!=|!~|=)"`)
	values    = regexp.MustCompile(`^label_values\(([a-z_]+)(), `)
	// ofTarget are the labels that Prometheus adds to what it scrapes.
	ofTarget = []string{"job", "instance", "le"}
)

// checkQuery fails the test if the query names a metric, or a label of it, that
// is not exported. Each aggregation of the dashboard is over one metric.
func checkQuery(t *testing.T, families map[string]*dto.MetricFamily, query string) {
	t.Helper()
	selections := selection.FindAllStringSubmatch(query, -1)
	if selections == nil {
		selections = values.FindAllStringSubmatch(query, -1)
	}
	if len(selections) == 0 {
		t.Errorf("%s asks for no metric", query)
	}
	for n, s := range selections {
		family := families[s[1]]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if of := families[strings.TrimSuffix(s[1], suffix)]; of.GetType() == dto.MetricType_HISTOGRAM {
				family = of
			}
		}
		if family == nil {
			t.Errorf("%s: no collector exports %s", query, s[1])
			continue
		}
		known := ofTarget
		for _, l := range family.Metric[0].Label {
			known = append(slices.Clone(known), l.GetName())
		}
		var wanted []string
		for _, m := range matched.FindAllStringSubmatch(s[2], -1) {
			wanted = append(wanted, m[1])
		}
		if groups := grouping.FindAllStringSubmatch(query, -1); n < len(groups) {
			wanted = append(wanted, strings.Split(groups[n][1], ", ")...)
		}
		for _, l := range wanted {
			if !slices.Contains(known, l) {
				t.Errorf("%s: %s has no label %s", query, s[1], l)
			}
		}
	}
}
