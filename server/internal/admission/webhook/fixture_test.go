package webhook_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// The audit log keeps a goroutine for each file that it has written.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"))
}

// cluster is a server whose clients its tests are.
type cluster struct {
	*client.Client
	t *testing.T
	s *levelwiretest.Server
}

func start(t *testing.T, change ...func(*server.Config)) *cluster {
	t.Helper()
	s := levelwiretest.Start(t, change...)
	return &cluster{s.Client(client.Options{}), t, s}
}

// hookServer is a webhook that records what it is asked.
type hookServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*admissionv1.AdmissionRequest
}

// decide is what a webhook answers; nil allows.
type decide func(q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func serve(t *testing.T, decide decide) *hookServer {
	return serveHTTP(t, func(h *hookServer, w http.ResponseWriter, review *admissionv1.AdmissionReview) {
		answer := &admissionv1.AdmissionResponse{Allowed: true}
		if decide != nil {
			if got := decide(review.Request); got != nil {
				answer = got
			}
		}
		answer.UID = review.Request.UID
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer})
	})
}

// serveHTTP is serve for answers that are no reviews.
func serveHTTP(t testing.TB, answer func(h *hookServer, w http.ResponseWriter, review *admissionv1.AdmissionReview)) *hookServer {
	t.Helper()
	h := &hookServer{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var review admissionv1.AdmissionReview
		if r.URL.Path != "/hook" && r.URL.Path != "/" { // as with kube-apiserver, "//hook" is "/hook"
			t.Errorf("called at %s", r.URL)
		}
		if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
			t.Errorf("the webhook is sent %q: %v", body, err)
			return
		}
		h.mu.Lock()
		h.seen = append(h.seen, review.Request)
		h.mu.Unlock()
		answer(h, w, &review)
	}))
	h.EnableHTTP2 = true
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// requests returns what the webhook was asked since the last call.
func (h *hookServer) requests() []*admissionv1.AdmissionRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.seen
	h.seen = nil
	return seen
}

func (h *hookServer) config() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{
		URL: new(h.URL + "//hook"), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}),
	}
}

// onMaps is the rule for writes of ConfigMaps.
func onMaps(operations ...registrationv1.OperationType) []registrationv1.RuleWithOperations {
	return on("", "v1", "configmaps", operations...)
}

func on(group, version, resource string, operations ...registrationv1.OperationType) []registrationv1.RuleWithOperations {
	if len(operations) == 0 {
		operations = []registrationv1.OperationType{"*"}
	}
	return []registrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       registrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}}
}

// inTests keeps webhooks away from what components write elsewhere.
var inTests = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "default"}}

func (c *cluster) validate(name string, h *hookServer, change ...func(*registrationv1.ValidatingWebhook)) {
	c.t.Helper()
	w := registrationv1.ValidatingWebhook{
		Name: "hook.example.com", ClientConfig: h.config(), Rules: onMaps(), NamespaceSelector: inTests,
		SideEffects: new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	for _, f := range change {
		f(&w)
	}
	mustCreate(c, "", &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []registrationv1.ValidatingWebhook{w},
	})
}

func (c *cluster) mutate(name string, h *hookServer, change ...func(*registrationv1.MutatingWebhook)) {
	c.t.Helper()
	w := registrationv1.MutatingWebhook{
		Name: "hook.example.com", ClientConfig: h.config(), Rules: onMaps(), NamespaceSelector: inTests,
		SideEffects: new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	for _, f := range change {
		f(&w)
	}
	mustCreate(c, "", &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []registrationv1.MutatingWebhook{w},
	})
}

func mustCreate[T client.Object](c *cluster, namespace string, obj T) T {
	c.t.Helper()
	made, err := create(c, namespace, obj)
	if err != nil {
		c.t.Fatal(err)
	}
	return made
}

func create[T client.Object](c *cluster, namespace string, obj T, opts ...metav1.CreateOptions) (T, error) {
	var o metav1.CreateOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	of := client.For[T](c.Client)
	if namespace != "" {
		return of.Namespace(namespace).Create(c.t.Context(), obj, o)
	}
	return of.Create(c.t.Context(), obj, o)
}

func newMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "v"}}
}

func patching(patch string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: new(admissionv1.PatchTypeJSONPatch)}
}

func refusing(status *metav1.Status) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: status}
}

// statusOf returns the code, the reason and the message of an error.
func statusOf(err error) (int32, metav1.StatusReason, string) {
	if err == nil {
		return 0, "", ""
	}
	if status, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // the client returns it as it is
		s := status.Status()
		return s.Code, s.Reason, s.Message
	}
	return -1, "", err.Error()
}

// metrics returns what the server counts.
func (c *cluster) metrics() string {
	c.t.Helper()
	config := c.s.Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, config.Host+"/metrics", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(body)
}

// patience bounds what a test waits for.
const patience = 3 * time.Minute
