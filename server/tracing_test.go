package server_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// spanReceiver is a collector of OTLP that keeps the spans.
type spanReceiver struct {
	collector.UnimplementedTraceServiceServer
	address string

	spans testwait.History[*tracev1.Span]
}

func newSpanReceiver(t *testing.T) *spanReceiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	receiver := &spanReceiver{address: listener.Addr().String()}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, receiver)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(listener) })
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	return receiver
}

// Export implements the service of a collector.
func (r *spanReceiver) Export(_ context.Context, q *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, resource := range q.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans.Add(span)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// await returns the spans of a trace, by their names, once all of these are there.
func (r *spanReceiver) await(t *testing.T, traceID string, names ...string) map[string]*tracev1.Span {
	t.Helper()
	found := map[string]*tracev1.Span{}
	testwait.Events(t, fmt.Sprintf("the spans %q of the trace %s", names, traceID), &r.spans, func(seen []*tracev1.Span) bool {
		if span := seen[len(seen)-1]; hexOf(span.GetTraceId()) == traceID {
			found[span.GetName()] = span
		}
		return !slices.ContainsFunc(names, func(name string) bool { return found[name] == nil })
	})
	return found
}

func hexOf(id []byte) string {
	const digits = "0123456789abcdef"
	var text strings.Builder
	for _, b := range id {
		text.WriteByte(digits[b>>4])
		text.WriteByte(digits[b&15])
	}
	return text.String()
}

// traceparent sends a header with each request that writes.
type traceparent struct {
	base  http.RoundTripper
	value string
}

func (p traceparent) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		r = r.Clone(r.Context())
		r.Header.Set("Traceparent", p.value)
	}
	return p.base.RoundTrip(r)
}

// tracedServer starts a server that traces what trusted users want to be traced.
func tracedServer(t *testing.T, share string) (*running, *spanReceiver) {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // milliseconds
	receiver := newSpanReceiver(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "tracing.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: " + receiver.address + "\n" + share
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, server.Config{DataDir: dir, Storage: server.Memory, TracingConfigFile: file}), receiver
}

// admitAll starts a webhook that admits everything, and sends what traceparent it gets.
func admitAll(ctx context.Context, t *testing.T, c *client.Client) <-chan string {
	t.Helper()
	got := make(chan string, 1)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case got <- r.Header.Get("Traceparent"):
		default:
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(&review)
	}))
	t.Cleanup(hook.Close)
	validateBy(ctx, t, c, hook)
	return got
}

// validateBy has a webhook, which is changed before, asked about new ConfigMaps.
func validateBy(ctx context.Context, t *testing.T, c *client.Client, hook *httptest.Server, change ...func(*admissionregistrationv1.ValidatingWebhook)) {
	t.Helper()
	none := admissionregistrationv1.SideEffectClassNone
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name: "validating.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: &hook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}
	for _, f := range change {
		f(&webhook)
	}
	_, err := client.For[*admissionregistrationv1.ValidatingWebhookConfiguration](c).Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "validating"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{webhook},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTraces: a create that is sent with a traceparent is one trace, from its authentication to the
// socket of a watch that gets its event.
func TestTraces(t *testing.T) {
	r, receiver := tracedServer(t, "")
	ctx := deadline(t)
	plain := r.client(t)
	seen := admitAll(ctx, t, plain)
	const traceID, parentID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	traced, err := client.FromKubeconfig(r.Kubeconfig(), client.Options{WrapTransport: func(base http.RoundTripper) http.RoundTripper {
		return traceparent{base, "00-" + traceID + "-" + parentID + "-01"}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traced.CloseIdleConnections)
	watch, err := configMaps(plain).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	create(ctx, t, traced, "a")
	for {
		event, err := watch.Next()
		if err != nil {
			t.Fatal(err)
		}
		if event.Object.GetName() == "a" {
			break
		}
	}
	const request = "POST /api/v1/namespaces/{:namespace}/configmaps"
	steps := []string{"authentication", "authorization", "mutating admission", "validating admission", "webhook", "storage create", "watch cache", "watch"}
	spans := receiver.await(t, traceID, append(steps, request)...)
	if got := hexOf(spans[request].GetParentSpanId()); got != parentID {
		t.Errorf("the request's parent is %s", got)
	}
	for _, step := range steps {
		parent := request
		if step == "webhook" {
			parent = "validating admission"
		}
		if hexOf(spans[step].GetParentSpanId()) != hexOf(spans[parent].GetSpanId()) {
			t.Errorf("the parent of %q is not %q", step, parent)
		}
		if spans[step].GetStartTimeUnixNano() < spans[request].GetStartTimeUnixNano() || spans[step].GetEndTimeUnixNano() < spans[step].GetStartTimeUnixNano() {
			t.Errorf("%q is not in order", step)
		}
	}
	if at, before := spans["watch"].GetStartTimeUnixNano(), spans["watch cache"].GetEndTimeUnixNano(); at != before {
		t.Errorf("the watch begins at %d, and the event is in the log at %d", at, before)
	}
	if want := "00-" + traceID + "-" + hexOf(spans["webhook"].GetSpanId()) + "-01"; want != <-seen {
		t.Errorf("the webhook did not get %s", want)
	}
	// What is not asked to be traced is not.
	for _, span := range receiver.spans.Seen() {
		if hexOf(span.GetTraceId()) != traceID {
			t.Errorf("a span of another request: %v", span)
		}
	}
}

// TestTracesOfAShare: without a traceparent, the share of all requests counts; the last spans are
// sent when the server stops.
func TestTracesOfAShare(t *testing.T) {
	r, receiver := tracedServer(t, "samplingRatePerMillion: 1000000\n")
	ctx := deadline(t)
	c := r.client(t)
	create(ctx, t, c, "a")
	c.CloseIdleConnections()
	r.stop(t)
	for _, span := range receiver.spans.Seen() {
		if span.GetName() == "POST /api/v1/namespaces/{:namespace}/configmaps" {
			return
		}
	}
	t.Errorf("the request is not among %d spans", len(receiver.spans.Seen()))
}
