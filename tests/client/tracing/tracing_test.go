package tracing_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/tracing"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder returns a Tracer and the function that returns its ended spans by
// name.
func recorder(t *testing.T) (*tracing.Tracer, func() map[string][]tracetest.SpanStub) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return tracing.New(provider, tracing.Options{}), func() map[string][]tracetest.SpanStub {
		byName := map[string][]tracetest.SpanStub{}
		for _, span := range exporter.GetSpans() {
			byName[span.Name] = append(byName[span.Name], span)
		}
		return byName
	}
}

func attribute(span tracetest.SpanStub, name string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == name {
			return a.Value.String()
		}
	}
	return ""
}

// headers records the traceparent of each request.
type headers struct {
	next http.RoundTripper
	seen chan string
}

func (h headers) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		h.seen <- req.Header.Get("traceparent")
	}
	return h.next.RoundTrip(req)
}

// A change, the call that it causes, the request of the call, and the call that
// is made again because the first one failed.
func TestOneTraceFromTheChangeToTheRequest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tracer, spans := recorder(t)
	parents := make(chan string, 10)
	server := levelwiretest.Start(t)
	plain := client.For[*corev1.ConfigMap](server.Client(client.Options{})).Namespace("default")
	c := server.Client(client.Options{WrapTransport: func(rt http.RoundTripper) http.RoundTripper {
		return tracer.WrapTransport(headers{rt, parents})
	}})
	factory := informer.NewFactory(c, informer.Options{})
	maps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default", LabelSelector: "traced"})
	secrets := client.For[*corev1.Secret](c).Namespace("default")

	calls := 0
	finished := make(chan struct{})
	ctl, err := controller.New(func(ctx context.Context, key controller.Key) (controller.Result, error) {
		if calls++; calls == 1 {
			return controller.Result{}, errors.New("not yet")
		}
		_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}, metav1.CreateOptions{})
		close(finished)
		return controller.Result{}, err
	}, controller.Options{Name: "copier", Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	controller.For(ctl, maps)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(running, controller.RunOptions{Factory: factory}, ctl) }()
	if _, err := plain.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"traced": ""}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-finished:
	case <-ctx.Done():
		t.Fatal("no call")
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	got := spans()
	if len(got["handle copier"]) != 1 || len(got["reconcile copier"]) != 2 || len(got["create secrets"]) != 1 {
		t.Fatalf("spans: %v", got)
	}
	handle, first, second, create := got["handle copier"][0], got["reconcile copier"][0], got["reconcile copier"][1], got["create secrets"][0]
	if first.Parent.SpanID() != handle.SpanContext.SpanID() || first.Status.Code != codes.Error || attribute(first, "levelwire.key") != "default/a" {
		t.Errorf("first call: %+v", first)
	}
	if len(second.Links) != 1 || second.Links[0].SpanContext.SpanID() != first.SpanContext.SpanID() || attribute(second, "levelwire.attempt") != "1" {
		t.Errorf("second call: %+v", second)
	}
	if create.Parent.SpanID() != second.SpanContext.SpanID() || attribute(create, "http.response.status_code") != "201" || attribute(create, "k8s.namespace.name") != "default" {
		t.Errorf("request: %+v", create)
	}
	if parent, want := <-parents, "00-"+create.SpanContext.TraceID().String()+"-"+create.SpanContext.SpanID().String()+"-01"; parent != want {
		t.Errorf("traceparent is %q, want %q", parent, want)
	}
	if attribute(handle, "levelwire.change") != "added" || attribute(handle, "levelwire.informer") != maps.Name() {
		t.Errorf("handler: %+v", handle)
	}
	if watches := got["watch configmaps"]; len(watches) == 0 || watches[0].EndTime.IsZero() {
		t.Errorf("watches: %+v", watches)
	}
}

// Changes that come while their key waits are links of the one call.
func TestMergedChangesAreLinks(t *testing.T) {
	tracer, spans := recorder(t)
	for _, version := range []string{"1", "2", "3"} {
		enqueued, end := tracer.StartHandler(controller.HandlerInfo{Controller: "c", ResourceVersion: version})
		enqueued(controller.Key{Name: "a"})
		end()
	}
	for range 2 {
		_, end := tracer.StartReconcile(t.Context(), controller.ReconcileInfo{Controller: "c", Key: controller.Key{Name: "a"}})
		end(controller.Result{}, nil)
	}
	got := spans()
	handles, calls := got["handle c"], got["reconcile c"]
	if len(calls) != 2 || calls[0].Parent.SpanID() != handles[0].SpanContext.SpanID() || len(calls[0].Links) != 2 {
		t.Errorf("the first call: %+v", calls[0])
	}
	if calls[1].Parent.IsValid() || len(calls[1].Links) != 0 {
		t.Errorf("the second call: %+v", calls[1])
	}
}

func TestHandlersHaveSpans(t *testing.T) {
	tracer, spans := recorder(t)
	var got []string
	handler := tracing.Handler(tracer, "audit", informer.HandlerFuncs[*corev1.Pod]{
		Add:    func(*corev1.Pod, bool) { got = append(got, "add") },
		Update: func(_, _ *corev1.Pod) { got = append(got, "update") },
		Delete: func(*corev1.Pod, bool) { panic("a bug") },
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: "7"}}
	handler.OnAdd(pod, true)
	handler.OnUpdate(pod, pod)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic does not reach the informer")
			}
		}()
		handler.OnDelete(pod, false)
	}()
	calls := spans()["handle audit"]
	if len(got) != 2 || len(calls) != 3 {
		t.Fatalf("calls %v, spans %+v", got, calls)
	}
	for n, change := range []string{"added", "updated", "deleted"} {
		if attribute(calls[n], "levelwire.change") != change || attribute(calls[n], "k8s.object.name") != "p" {
			t.Errorf("%+v", calls[n])
		}
	}
	if calls[2].Status.Code != codes.Error {
		t.Errorf("%+v", calls[2])
	}
}

// A request that fails before there is an answer, and one that is refused.
func TestFailedRequestsAreErrors(t *testing.T) {
	tracer, spans := recorder(t)
	c := levelwiretest.Start(t).Client(client.Options{WrapTransport: tracer.WrapTransport})
	pods := client.For[*corev1.Pod](c).Namespace("default")
	if _, err := pods.Get(t.Context(), "none", metav1.GetOptions{}); err == nil {
		t.Error("there is a pod")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pods.List(ended, metav1.ListOptions{}); err == nil {
		t.Error("listed without a context")
	}
	got := spans()
	if gets := got["get pods"]; len(gets) != 1 || gets[0].Status.Code != codes.Error || attribute(gets[0], "http.response.status_code") != "404" {
		t.Errorf("%+v", gets)
	}
	for _, list := range got["list pods"] { // none, if the context ended before the transport was asked
		if list.Status.Code != codes.Error {
			t.Errorf("%+v", list)
		}
	}
}

// A change that the program made itself is linked to the request. The handler
// waits until the answer has been read.
func TestChangesAreLinkedToTheRequestsThatMadeThem(t *testing.T) {
	for _, content := range []client.ContentType{client.JSON, client.Protobuf} {
		t.Run(string(content), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			tracer, spans := recorder(t)
			c := levelwiretest.Start(t).Client(client.Options{ContentType: content, WrapTransport: tracer.WrapTransport})
			maps := client.For[*corev1.ConfigMap](c).Namespace("default")
			created, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			tracing.Handler(tracer, "seen", informer.HandlerFuncs[*corev1.ConfigMap]{}).OnAdd(created, false)
			got := spans()
			if handle, create := got["handle seen"][0], got["create configmaps"][0]; len(handle.Links) != 1 || handle.Links[0].SpanContext.SpanID() != create.SpanContext.SpanID() {
				t.Errorf("%+v", handle)
			}
		})
	}
}
