package webhook_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestEquivalent: a webhook for one version of a kind sees writes of the others,
// converted, and its patches are converted back; with match policy Exact it does not.
func TestEquivalent(t *testing.T) {
	c := start(t)
	h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return patching(`[{"op":"replace","path":"/spec/maxReplicas","value":7}]`)
	})
	c.mutate("a", h, func(w *registrationv1.MutatingWebhook) { w.Rules = on("autoscaling", "v2", "horizontalpodautoscalers") })
	autoscaler := func(name string) *autoscalingv1.HorizontalPodAutoscaler {
		return &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			MaxReplicas: 3, ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
			TargetCPUUtilizationPercentage: new(int32(50)),
		}}
	}
	made := mustCreate(c, "default", autoscaler("a"))
	seen := h.requests()
	if len(seen) != 1 {
		t.Fatalf("called %d times", len(seen))
	}
	q := seen[0]
	if q.Kind.Version != "v2" || q.Resource.Version != "v2" || q.RequestKind.Version != "v1" || q.RequestResource.Version != "v1" || !strings.Contains(string(q.Object.Raw), `"apiVersion":"autoscaling/v2"`) ||
		!strings.Contains(string(q.Object.Raw), `"averageUtilization":50`) {
		t.Errorf("sent %v %v %s", q.Kind, q.RequestKind, q.Object.Raw)
	}
	if made.Spec.MaxReplicas != 7 || made.Spec.TargetCPUUtilizationPercentage == nil || *made.Spec.TargetCPUUtilizationPercentage != 50 {
		t.Errorf("made %+v", made.Spec)
	}
	configurations := client.For[*registrationv1.MutatingWebhookConfiguration](c.Client)
	if _, err := configurations.Patch(t.Context(), "a", types.JSONPatchType, []byte(`[{"op":"replace","path":"/webhooks/0/matchPolicy","value":"Exact"}]`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if made := mustCreate(c, "default", autoscaler("b")); made.Spec.MaxReplicas != 3 {
		t.Errorf("made %+v", made.Spec)
	}
}

// TestSelectors lists which objects webhooks with selectors are asked about.
func TestSelectors(t *testing.T) {
	c := start(t)
	h := serve(t, nil)
	c.validate("a", h, func(w *registrationv1.ValidatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"watched": "yes"}}
	})
	mustCreate(c, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	labeled := func(name, value string) *corev1.ConfigMap {
		m := newMap(name)
		m.Labels = map[string]string{"watched": value}
		return m
	}
	mustCreate(c, "default", labeled("yes", "yes"))
	mustCreate(c, "default", labeled("no", "no"))
	mustCreate(c, "other", labeled("elsewhere", "yes"))
	maps := client.For[*corev1.ConfigMap](c.Client).Namespace("default")
	// The old labels count, too: an object cannot leave a webhook unnoticed.
	if _, err := maps.Patch(t.Context(), "yes", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, q := range h.requests() {
		names = append(names, string(q.Operation)+" "+q.Name)
	}
	if got := strings.Join(names, ", "); got != "CREATE yes, UPDATE yes" {
		t.Errorf("asked about %s", got)
	}
}

// TestReviewVersions sends the first version that the webhook accepts and the server knows.
func TestReviewVersions(t *testing.T) {
	c := start(t)
	h := serveHTTP(t, func(_ *hookServer, w http.ResponseWriter, review *admissionv1.AdmissionReview) {
		if review.APIVersion != "admission.k8s.io/v1beta1" {
			t.Errorf("sent %s", review.APIVersion)
		}
		_, _ = w.Write([]byte(`{"response":{"allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEveCIsInZhbHVlIjoieSJ9XQ=="}}`))
	})
	c.mutate("a", h, func(w *registrationv1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v7", "v1beta1", "v1"} })
	if made := mustCreate(c, "default", newMap("m")); made.Data["x"] != "y" {
		t.Errorf("made %v", made.Data)
	}
}

// TestParallel: validating webhooks are called at the same time; the refusal of the first
// in their order counts.
func TestParallel(t *testing.T) {
	c := start(t)
	var met sync.WaitGroup
	met.Add(2)
	refuse := func(message string) *hookServer {
		return serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			met.Done()
			met.Wait() // both calls are under way
			return refusing(&metav1.Status{Message: message})
		})
	}
	c.validate("b", refuse("second"))
	c.validate("a", refuse("first"))
	if _, err := create(c, "default", newMap("m")); err == nil || !strings.Contains(err.Error(), "first") {
		t.Errorf("%v", err)
	}
}

// TestRolledService: a webhook behind a Service is found while its endpoints change.
func TestRolledService(t *testing.T) {
	c := start(t)
	hooks := []*hookServer{serve(t, nil), serve(t, nil)}
	const namespace, name = metav1.NamespaceSystem, "metrics-server" // it may have an endpoint on the loopback, as few may
	mustCreate(c, namespace, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "https", Port: 443}},
	}})
	address := netip.MustParseAddrPort(hooks[0].Listener.Addr().String())
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address.Addr().String()}}},
		Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(address.Port()))}},
	}
	// httptest's certificate is for example.com and 127.0.0.1, and not for the Service.
	c.validate("a", hooks[0], func(w *registrationv1.ValidatingWebhook) {
		w.ClientConfig.URL = nil
		w.ClientConfig.Service = &registrationv1.ServiceReference{Namespace: namespace, Name: name}
	})
	_, err := create(c, "default", newMap("m"))
	if _, _, message := statusOf(err); !strings.Contains(message, "service kube-system/metrics-server has no endpoint that is ready") {
		t.Errorf("%v", err)
	}
	mustCreate(c, namespace, slice)
	_, err = create(c, "default", newMap("m"))
	if _, _, message := statusOf(err); !strings.Contains(message, "metrics-server.kube-system.svc") { // it was reached, and is another one
		t.Errorf("%v", err)
	}
	_, port, _ := net.SplitHostPort(hooks[1].Listener.Addr().String())
	slices := client.For[*discoveryv1.EndpointSlice](c.Client).Namespace(namespace)
	number, _ := strconv.Atoi(port)
	if _, err := slices.Patch(t.Context(), name, types.JSONPatchType, fmt.Appendf(nil, `[{"op":"replace","path":"/ports/0/port","value":%d}]`, number), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = create(c, "default", newMap("m"))
	if _, _, message := statusOf(err); !strings.Contains(message, "metrics-server.kube-system.svc") {
		t.Errorf("%v", err)
	}
	// Each change of an endpoint counts for the next request.
	for i := range 200 {
		ready := i%2 == 1
		if _, err := slices.Patch(t.Context(), name, types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":"/endpoints/0/conditions","value":{"ready":%t}}]`, ready), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err = create(c, "default", newMap("m"))
		if _, _, message := statusOf(err); strings.Contains(message, "has no endpoint that is ready") == ready {
			t.Fatalf("the endpoint is ready: %t: %v", ready, err)
		}
	}
}

// TestAuditAnnotations checks what the audit event says of webhooks.
func TestAuditAnnotations(t *testing.T) {
	dir := t.TempDir()
	policy, logged := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Request\n  resources: [{group: '', resources: [configmaps]}]\n  namespaces: [default]\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, func(config *server.Config) { config.Audit.PolicyFile, config.Audit.LogPath = policy, logged })
	h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		answer := patching(`[{"op":"add","path":"/data/x","value":"y"}]`)
		answer.AuditAnnotations = map[string]string{"why": "because", "not/allowed": "x"}
		return answer
	})
	c.mutate("a", h)
	broken := serve(t, nil)
	broken.Close()
	c.validate("b", broken, func(w *registrationv1.ValidatingWebhook) { w.FailurePolicy = new(registrationv1.Ignore) })
	mustCreate(c, "default", newMap("m"))
	c.s.Stop() // writes the log out
	content, err := os.ReadFile(logged)
	if err != nil {
		t.Fatal(err)
	}
	var event struct{ Annotations map[string]string }
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, `"verb":"create"`) {
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Fatal(err)
			}
		}
	}
	for key, want := range map[string]string{
		"mutation.webhook.admission.k8s.io/round_0_index_0":               `{"configuration":"a","webhook":"hook.example.com","mutated":true}`,
		"patch.webhook.admission.k8s.io/round_0_index_0":                  `{"configuration":"a","webhook":"hook.example.com","patch":[{"op":"add","path":"/data/x","value":"y"}],"patchType":"JSONPatch"}`,
		"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "hook.example.com",
		"hook.example.com/why":                                            "because",
	} {
		if got := event.Annotations[key]; got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// TestLateAnswer: what a webhook answers after its deadline counts for nothing, and
// nothing is written twice.
func TestLateAnswer(t *testing.T) {
	c := start(t)
	release := make(chan struct{})
	h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		<-release
		return patching(`[{"op":"add","path":"/data/late","value":"x"}]`)
	})
	c.mutate("a", h, func(w *registrationv1.MutatingWebhook) {
		w.TimeoutSeconds, w.FailurePolicy = new(int32(1)), new(registrationv1.Ignore)
	})
	made := mustCreate(c, "default", newMap("m"))
	close(release)
	got, err := client.For[*corev1.ConfigMap](c.Client).Namespace("default").Get(t.Context(), "m", metav1.GetOptions{})
	if err != nil || got.ResourceVersion != made.ResourceVersion || got.Data["late"] != "" {
		t.Errorf("%v %v", got, err)
	}
}

// TestConfigurationsAreValidated lists mistakes in configurations.
func TestConfigurationsAreValidated(t *testing.T) {
	c := start(t)
	h := serve(t, nil)
	for name, test := range map[string]struct {
		change func(*registrationv1.ValidatingWebhook)
		field  string
	}{
		"name": {func(w *registrationv1.ValidatingWebhook) { w.Name = "short" }, "webhooks[0].name"},
		"operation": {func(w *registrationv1.ValidatingWebhook) {
			w.Rules[0].Operations = []registrationv1.OperationType{"READ"}
		}, "operations[0]"},
		"all and one": {func(w *registrationv1.ValidatingWebhook) {
			w.Rules[0].Operations = []registrationv1.OperationType{"*", "CREATE"}
		}, "operations"},
		"side effects": {func(w *registrationv1.ValidatingWebhook) { w.SideEffects = new(registrationv1.SideEffectClassSome) }, "sideEffects"},
		"no effects":   {func(w *registrationv1.ValidatingWebhook) { w.SideEffects = nil }, "sideEffects"},
		"timeout":      {func(w *registrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(31)) }, "timeoutSeconds"},
		"no timeout":   {func(w *registrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(0)) }, "timeoutSeconds"},
		"http":         {func(w *registrationv1.ValidatingWebhook) { w.ClientConfig.URL = new("http://example.com") }, "clientConfig.url"},
		"user":         {func(w *registrationv1.ValidatingWebhook) { w.ClientConfig.URL = new("https://me@example.com") }, "clientConfig.url"},
		"no version":   {func(w *registrationv1.ValidatingWebhook) { w.AdmissionReviewVersions = []string{"v2"} }, "admissionReviewVersions"},
		"two versions": {func(w *registrationv1.ValidatingWebhook) { w.AdmissionReviewVersions = []string{"v1", "v1"} }, "admissionReviewVersions"},
		"resources":    {func(w *registrationv1.ValidatingWebhook) { w.Rules[0].Resources = []string{"pods/*", "pods/status"} }, "resources"},
		"condition": {func(w *registrationv1.ValidatingWebhook) {
			w.MatchConditions = []registrationv1.MatchCondition{{Name: "a", Expression: "object.("}}
		}, "matchConditions[0].expression"},
		"not boolean": {func(w *registrationv1.ValidatingWebhook) {
			w.MatchConditions = []registrationv1.MatchCondition{{Name: "a", Expression: "1"}}
		}, "matchConditions[0].expression"},
		"condition name": {func(w *registrationv1.ValidatingWebhook) {
			w.MatchConditions = []registrationv1.MatchCondition{{Expression: "true"}}
		}, "matchConditions[0].name"},
	} {
		w := registrationv1.ValidatingWebhook{
			Name: "hook.example.com", ClientConfig: h.config(), Rules: onMaps(), SideEffects: new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}
		test.change(&w)
		_, err := create(c, "", &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Webhooks: []registrationv1.ValidatingWebhook{w}})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) {
			t.Errorf("%s: %v, want a 422 of %s", name, err, test.field)
		}
	}
}

// TestNamespacesOfOtherVersions: an object that is shown in another version than it is
// stored in needs its namespace, too.
func TestNamespacesOfOtherVersions(t *testing.T) {
	c := start(t)
	_, err := create(c, "none", &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
		MaxReplicas: 3, ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
	}})
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v, want 404", err)
	}
}
