package webhook_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// TestVerdicts lists what becomes of a create for each answer of a validating webhook.
func TestVerdicts(t *testing.T) {
	c := start(t)
	for name, test := range map[string]struct {
		answer  *admissionv1.AdmissionResponse
		code    int32
		reason  metav1.StatusReason
		message string
	}{
		"allowed":        {answer: &admissionv1.AdmissionResponse{Allowed: true}},
		"no explanation": {refusing(nil), 400, "", `admission webhook "hook.example.com" denied the request without explanation`},
		"message":        {refusing(&metav1.Status{Message: "no"}), 400, "", `admission webhook "hook.example.com" denied the request: no`},
		"reason":         {refusing(&metav1.Status{Reason: "Odd"}), 400, "Odd", `admission webhook "hook.example.com" denied the request: Odd`},
		"code":           {refusing(&metav1.Status{Message: "no", Code: 403, Reason: metav1.StatusReasonForbidden}), 403, metav1.StatusReasonForbidden, "no"},
		"low code":       {refusing(&metav1.Status{Message: "no", Code: 200, Status: "Success"}), 400, "", "no"},
		"no such code":   {refusing(&metav1.Status{Message: "no", Code: 100000}), 500, "", "no"},
		"patch":          {patching(`[{"op":"add","path":"/data/a","value":"b"}]`), 500, metav1.StatusReasonInternalError, "validating webhook may not return response.patch"},
	} {
		h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return test.answer })
		configuration := "c-" + strings.ReplaceAll(name, " ", "-")
		c.validate(configuration, h)
		_, err := create(c, "default", newMap(configuration))
		code, reason, message := statusOf(err)
		if code != test.code || reason != test.reason || !strings.Contains(message, test.message) {
			t.Errorf("%s: %d %q %q, want %d %q %q", name, code, reason, message, test.code, test.reason, test.message)
		}
		if got := len(h.requests()); got != 1 {
			t.Errorf("%s: called %d times", name, got)
		}
		if err := client.For[*registrationv1.ValidatingWebhookConfiguration](c.Client).Delete(t.Context(), configuration, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLies lists the answers that are no verdict: each is a clear 500, or ignored.
func TestLies(t *testing.T) {
	c := start(t)
	raw := func(text string) func(*hookServer, http.ResponseWriter, *admissionv1.AdmissionReview) {
		return func(_ *hookServer, w http.ResponseWriter, _ *admissionv1.AdmissionReview) {
			_, _ = w.Write([]byte(text))
		}
	}
	response := func(change func(*admissionv1.AdmissionReview)) func(*hookServer, http.ResponseWriter, *admissionv1.AdmissionReview) {
		return func(_ *hookServer, w http.ResponseWriter, review *admissionv1.AdmissionReview) {
			answer := &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}}
			change(answer)
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
	for name, test := range map[string]struct {
		answer  func(*hookServer, http.ResponseWriter, *admissionv1.AdmissionReview)
		message string
	}{
		"bad JSON":    {raw("{"), "its answer is no AdmissionReview"},
		"nothing":     {raw(""), "its answer is no AdmissionReview"},
		"no response": {raw("{}"), "webhook response was absent"},
		"wrong uid":   {response(func(r *admissionv1.AdmissionReview) { r.Response.UID = "x" }), `got "x"`},
		"wrong kind":  {response(func(r *admissionv1.AdmissionReview) { r.Kind = "Review" }), "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview"},
		"wrong type":  {response(func(r *admissionv1.AdmissionReview) { r.Response.PatchType = new(admissionv1.PatchType("x")) }), "response.patchType but not response.patch"},
		"no type":     {response(func(r *admissionv1.AdmissionReview) { r.Response.Patch = []byte("[]") }), "response.patch but not response.patchType"},
		"other type":  {response(func(r *admissionv1.AdmissionReview) { r.Response = patchOf(r, "MergePatch", `{}`) }), `unsupported patch type "MergePatch"`},
		"no patch":    {response(func(r *admissionv1.AdmissionReview) { r.Response = patchOf(r, "JSONPatch", `{"a":1}`) }), "received undecodable patch"},
		"endless":     {endless, "its answer has more than"},
		"redirection": {func(_ *hookServer, w http.ResponseWriter, _ *admissionv1.AdmissionReview) {
			w.Header().Set("Location", "https://127.0.0.1:1/")
			w.WriteHeader(307)
		}, "307 Temporary Redirect"},
		"server error": {func(_ *hookServer, w http.ResponseWriter, _ *admissionv1.AdmissionReview) {
			http.Error(w, "oh dear", 500)
		}, "oh dear"},
	} {
		h := serveHTTP(t, test.answer)
		id := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
		c.mutate(id, h)
		_, err := create(c, "default", newMap(id))
		code, reason, message := statusOf(err)
		if code != 500 || reason != metav1.StatusReasonInternalError || !strings.Contains(message, `failed calling webhook "hook.example.com"`) || !strings.Contains(message, test.message) {
			t.Errorf("%s: %d %q %q, want %q", name, code, reason, message, test.message)
		}
		configurations := client.For[*registrationv1.MutatingWebhookConfiguration](c.Client)
		if _, err := configurations.Patch(t.Context(), id, types.JSONPatchType, []byte(`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := create(c, "default", newMap(id)); err != nil {
			t.Errorf("%s: ignored: %v", name, err)
		}
		if err := configurations.Delete(t.Context(), id, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func patchOf(r *admissionv1.AdmissionReview, kind admissionv1.PatchType, patch string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: r.Response.UID, Allowed: true, PatchType: &kind, Patch: []byte(patch)}
}

func endless(_ *hookServer, w http.ResponseWriter, _ *admissionv1.AdmissionReview) {
	chunk := make([]byte, 1<<20)
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// TestPatches lists patches and what is stored of them.
func TestPatches(t *testing.T) {
	c := start(t)
	for name, test := range map[string]struct {
		patch   string
		code    int32
		message string
		check   func(*corev1.ConfigMap) bool
	}{
		"adds":          {patch: `[{"op":"add","path":"/data/added","value":"x"}]`, check: func(m *corev1.ConfigMap) bool { return m.Data["added"] == "x" }},
		"nothing":       {patch: `[]`, check: func(m *corev1.ConfigMap) bool { return len(m.Data) == 1 }},
		"uid":           {patch: `[{"op":"replace","path":"/metadata/uid","value":"x"}]`, check: func(m *corev1.ConfigMap) bool { return m.UID != "x" && m.UID != "" }},
		"managedFields": {patch: `[{"op":"remove","path":"/metadata/managedFields"}]`, check: func(m *corev1.ConfigMap) bool { return len(m.ManagedFields) == 1 }},
		"invalid":       {patch: `[{"op":"add","path":"/metadata/labels","value":{"not a label":"x"}}]`, code: 422, message: "metadata.labels"},
		"wrong type":    {patch: `[{"op":"add","path":"/data","value":["x"]}]`, code: 500, message: "does not fit the object"},
		"no such path":  {patch: `[{"op":"remove","path":"/data/none"}]`, code: 500, message: "does not fit the object"},
		"other kind":    {patch: `[{"op":"replace","path":"/kind","value":"Secret"}]`, code: 500, message: "does not fit the object"},
		"namespace":     {patch: `[{"op":"replace","path":"/metadata/namespace","value":"kube-system"}]`, code: 500, message: "may not change the namespace"},
	} {
		h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return patching(test.patch) })
		id := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
		c.mutate(id, h)
		made, err := create(c, "default", newMap(id))
		if code, _, message := statusOf(err); code != test.code || !strings.Contains(message, test.message) {
			t.Errorf("%s: %v, want %d %q", name, err, test.code, test.message)
		} else if err == nil && !test.check(made) {
			t.Errorf("%s: %v", name, made)
		}
		if err := client.For[*registrationv1.MutatingWebhookConfiguration](c.Client).Delete(t.Context(), id, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.For[*corev1.ConfigMap](c.Client).Namespace("default").Get(t.Context(), id, metav1.GetOptions{}); test.code != 0 && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, want nothing stored", name, err)
		}
	}
}

// TestWhatWebhooksAreSent checks the review of each kind of request.
func TestWhatWebhooksAreSent(t *testing.T) {
	c := start(t)
	h := serve(t, nil)
	c.validate("all", h, func(w *registrationv1.ValidatingWebhook) {
		w.Rules = append(append(onMaps(), on("apps", "v1", "deployments/*")...), on("apps", "v1", "deployments")...)
		w.Rules = append(w.Rules, on("", "v1", "namespaces")...)
		w.NamespaceSelector = nil
	})
	maps, deployments := client.For[*corev1.ConfigMap](c.Client).Namespace("default"), client.For[*appsv1.Deployment](c.Client).Namespace("default")
	expect := func(what string, write func() error, check func(q *admissionv1.AdmissionRequest) bool) {
		t.Helper()
		h.requests()
		if err := write(); err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, q := range h.requests() {
			if q.UserInfo.Username != "" && check(q) {
				return
			}
			t.Logf("%s: %s %s %s/%s object %s old %s options %s", what, q.Operation, q.Kind, q.Namespace, q.Name, q.Object.Raw, q.OldObject.Raw, q.Options.Raw)
		}
		t.Errorf("%s: the webhook was not asked that", what)
	}
	expect("create", func() error {
		_, err := create(c, "default", newMap("m"), metav1.CreateOptions{FieldManager: "me"})
		return err
	}, func(q *admissionv1.AdmissionRequest) bool {
		return q.Operation == admissionv1.Create && q.Name == "m" && q.Namespace == "default" && q.Kind.Kind == "ConfigMap" && q.Resource.Resource == "configmaps" &&
			strings.Contains(string(q.Object.Raw), `"k":"v"`) && len(q.OldObject.Raw) == 0 && strings.Contains(string(q.Options.Raw), `"fieldManager":"me"`) &&
			strings.Contains(string(q.Options.Raw), "CreateOptions") && q.DryRun != nil && !*q.DryRun && strings.Contains(string(q.Object.Raw), `"apiVersion":"v1"`)
	})
	expect("patch", func() error {
		_, err := maps.Patch(t.Context(), "m", types.MergePatchType, []byte(`{"data":{"k":"w"}}`), metav1.PatchOptions{})
		return err
	}, func(q *admissionv1.AdmissionRequest) bool {
		return q.Operation == admissionv1.Update && strings.Contains(string(q.Object.Raw), `"k":"w"`) && strings.Contains(string(q.OldObject.Raw), `"k":"v"`) &&
			strings.Contains(string(q.Options.Raw), "UpdateOptions")
	})
	expect("delete", func() error {
		return maps.Delete(t.Context(), "m", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	}, func(q *admissionv1.AdmissionRequest) bool {
		return q.Operation == admissionv1.Delete && len(q.Object.Raw) == 0 && strings.Contains(string(q.OldObject.Raw), `"k":"w"`) && strings.Contains(string(q.Options.Raw), "DeleteOptions")
	})
	expect("create a deployment", func() error {
		labels := map[string]string{"a": "b"}
		_, err := create(c, "default", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		}})
		return err
	}, func(q *admissionv1.AdmissionRequest) bool { return q.Kind.Kind == "Deployment" })
	expect("scale", func() error {
		_, err := deployments.Patch(t.Context(), "d", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}, "scale")
		return err
	}, func(q *admissionv1.AdmissionRequest) bool {
		var scale autoscalingv1.Scale
		return q.SubResource == "scale" && q.Kind.Kind == "Scale" && q.Kind.Group == "autoscaling" && json.Unmarshal(q.Object.Raw, &scale) == nil && scale.Spec.Replicas == 3
	})
	expect("create a namespace", func() error {
		_, err := create(c, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
		return err
	}, func(q *admissionv1.AdmissionRequest) bool { return q.Namespace == "team" && q.Name == "team" })
}

// TestDryRun: a webhook with side effects refuses a dry run without being called.
func TestDryRun(t *testing.T) {
	c := start(t)
	h := serve(t, nil)
	c.validate("all", h)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := create(c, "default", newMap("a"), dry); err != nil {
		t.Error(err)
	}
	if seen := h.requests(); len(seen) != 1 || !*seen[0].DryRun {
		t.Errorf("asked %v", seen)
	}
	c.validate("effects", h, func(w *registrationv1.ValidatingWebhook) {
		w.SideEffects = new(registrationv1.SideEffectClassNoneOnDryRun)
	})
	if _, err := create(c, "default", newMap("a"), dry); err != nil {
		t.Error(err)
	}
}

// TestOrderAndReinvocation: mutating webhooks are called in the order of their
// configurations, and again if they want to see what later ones have changed.
func TestOrderAndReinvocation(t *testing.T) {
	c := start(t)
	var order []string
	hook := func(name string) *hookServer {
		return serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			order = append(order, name)
			return patching(`[{"op":"add","path":"/data/` + name + `","value":"x"}]`)
		})
	}
	c.mutate("b", hook("second"))
	c.mutate("a", hook("first"), func(w *registrationv1.MutatingWebhook) {
		w.ReinvocationPolicy = new(registrationv1.IfNeededReinvocationPolicy)
	})
	made := mustCreate(c, "default", newMap("m"))
	if got := strings.Join(order, " "); got != "first second first" || made.Data["first"] != "x" || made.Data["second"] != "x" {
		t.Errorf("called %s, made %v", got, made.Data)
	}
}

// TestWarnings reach the client.
func TestWarnings(t *testing.T) {
	c := start(t)
	h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"mind the gap"}}
	})
	c.validate("a", h)
	var warned []string
	config := c.s.Config()
	config.WarningHandler = warnings(func(text string) { warned = append(warned, text) })
	loud, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.ConfigMap](loud).Namespace("default").Create(t.Context(), newMap("m"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || warned[0] != "mind the gap" {
		t.Errorf("warned %q", warned)
	}
}

type warnings func(text string)

// HandleWarningHeader implements rest.WarningHandler.
func (w warnings) HandleWarningHeader(_ int, _, text string) { w(text) }

// TestHanging: a webhook that does not answer holds the requests that it is asked about
// for its timeout, and no other.
func TestHanging(t *testing.T) {
	c := start(t)
	release := make(chan struct{})
	h := serveHTTP(t, func(*hookServer, http.ResponseWriter, *admissionv1.AdmissionReview) { <-release })
	t.Cleanup(func() { close(release) })
	c.validate("a", h, func(w *registrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(1)) })
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := create(c, "default", newMap("m"))
		done <- err
	}()
	for i := range 20 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s" + string(rune('a'+i))}}
		if _, err := create(c, "default", secret); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-done:
		code, _, message := statusOf(err)
		if code != 500 || !strings.Contains(message, "it did not answer within 1s") || time.Since(began) < time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	case <-time.After(patience):
		t.Fatal("the request is still held")
	}
}

// TestOwnSubject: no webhook is asked about the configurations, so that a mistake in one
// can be taken back.
func TestOwnSubject(t *testing.T) {
	c := start(t)
	h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return refusing(nil) })
	c.validate("self", h, func(w *registrationv1.ValidatingWebhook) {
		w.Rules, w.NamespaceSelector = on("*", "*", "*"), nil
	})
	if _, err := create(c, "default", newMap("m")); err == nil {
		t.Error("the webhook does not act")
	}
	configurations := client.For[*registrationv1.ValidatingWebhookConfiguration](c.Client)
	if err := configurations.Delete(t.Context(), "self", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	mustCreate(c, "default", newMap("m"))
}

// TestCallsBack: a webhook may use the API while it decides.
func TestCallsBack(t *testing.T) {
	c := start(t)
	h := serve(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if _, err := create(c, "default", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "from-the-webhook"}}); err != nil {
			return refusing(&metav1.Status{Message: err.Error()})
		}
		return nil
	})
	c.validate("a", h)
	mustCreate(c, "default", newMap("m"))
}

// TestMatchConditions calls a webhook only if all of its conditions are true.
func TestMatchConditions(t *testing.T) {
	c := start(t)
	h := serve(t, nil)
	c.validate("a", h, func(w *registrationv1.ValidatingWebhook) {
		w.MatchConditions = []registrationv1.MatchCondition{
			{Name: "named", Expression: `object.metadata.name.startsWith("asked")`},
			{Name: "may", Expression: `authorizer.group("").resource("configmaps").namespace("default").check("create").allowed()`},
		}
	})
	mustCreate(c, "default", newMap("asked"))
	mustCreate(c, "default", newMap("other"))
	if seen := h.requests(); len(seen) != 1 || seen[0].Name != "asked" {
		t.Errorf("asked about %v", seen)
	}
	c.validate("b", h, func(w *registrationv1.ValidatingWebhook) {
		w.MatchConditions = []registrationv1.MatchCondition{{Name: "fails", Expression: `object.none == "x"`}}
	})
	_, err := create(c, "default", newMap("third"))
	if code, _, message := statusOf(err); code != 403 || !strings.Contains(message, "no such key") {
		t.Errorf("%v, want 403", err)
	}
}

// TestDearMatchConditions: conditions that cost more than kube-apiserver allows end early,
// and refuse the request unless failures are ignored.
func TestDearMatchConditions(t *testing.T) {
	c := start(t)
	h := serve(t, nil)
	// To look for a string of n bytes in another one is rated at n*n/100, and takes no time.
	const dear = `object.data.k.contains(object.data.k)`
	c.validate("a", h, func(w *registrationv1.ValidatingWebhook) {
		w.MatchConditions = []registrationv1.MatchCondition{{Name: "dear", Expression: dear}}
		w.NamespaceSelector = nil
	})
	large := newMap("large")
	large.Data["k"] = strings.Repeat("k", 40_000)
	_, err := create(c, "default", large)
	if code, _, message := statusOf(err); code != 403 || !strings.Contains(message, "budget") && !strings.Contains(message, "cost limit") {
		t.Errorf("%v, want 403", err)
	}
	mustCreate(c, "default", newMap("small"))
	metrics := c.metrics()
	if want := `apiserver_admission_match_condition_evaluation_errors_total{kind="webhook",name="hook.example.com",operation="CREATE",type="validating"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("the metrics have no %s", want)
	}
}
