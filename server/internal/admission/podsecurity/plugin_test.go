package podsecurity_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// warnings keeps the warnings of all answers.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) wrap(next http.RoundTripper) http.RoundTripper { return transport{w, next} }

type transport struct {
	*warnings
	next http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, text := range resp.Header.Values("Warning") {
			t.texts = append(t.texts, strings.ReplaceAll(text, `\"`, `"`))
		}
	}
	return resp, err
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

func (w *warnings) mustHave(t *testing.T, what string, texts ...string) {
	t.Helper()
	got := w.take()
	for _, text := range texts {
		if !slices.ContainsFunc(got, func(warning string) bool { return strings.Contains(warning, text) }) {
			t.Errorf("%s: the warnings are %q, want %q", what, got, text)
		}
	}
	if len(texts) == 0 && len(got) > 0 {
		t.Errorf("%s: there are warnings: %q", what, got)
	}
}

func start(t *testing.T, change ...func(*server.Config)) (*client.Client, *warnings) {
	t.Helper()
	seen := &warnings{}
	config := levelwiretest.Start(t, change...).Config()
	config.Wrap(seen.wrap)
	cl, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.CloseIdleConnections)
	return cl, seen
}

func createNamespace(t *testing.T, cl *client.Client, name string, labels map[string]string) error {
	t.Helper()
	_, err := client.For[*corev1.Namespace](cl).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	return err
}

func createPod(t *testing.T, cl *client.Client, namespace string, spec corev1.PodSpec) error {
	t.Helper()
	_, err := client.For[*corev1.Pod](cl).Namespace(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}, Spec: spec}, metav1.CreateOptions{})
	return err
}

func plain() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}
}

func privileged() corev1.PodSpec {
	spec := plain()
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	return spec
}

func ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestLevels: a namespace enforces one level and warns of another.
func TestLevels(t *testing.T) {
	cl, seen := start(t)
	ok(t, "namespace", createNamespace(t, cl, "team", map[string]string{
		"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.30", "pod-security.kubernetes.io/warn": "restricted",
	}))
	seen.mustHave(t, "namespace")
	err := createPod(t, cl, "team", privileged())
	if want := `violates PodSecurity "baseline:v1.30": privileged (container "c" must not set securityContext.privileged=true)`; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("privileged: %v, want %s", err, want)
	}
	seen.mustHave(t, "a refused pod")
	ok(t, "plain", createPod(t, cl, "team", plain()))
	seen.mustHave(t, "plain", `would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set`)
	ok(t, "in a namespace without labels", createPod(t, cl, "default", privileged()))
	seen.mustHave(t, "in a namespace without labels")

	labels := map[string]string{"app": "a"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: privileged()},
	}}
	_, err = client.For[*appsv1.Deployment](cl).Namespace("team").Create(t.Context(), deployment, metav1.CreateOptions{})
	ok(t, "a deployment is warned of only", err)
	seen.mustHave(t, "deployment", `would violate PodSecurity "restricted:latest": privileged (container "c"`)
}

// TestMetrics: the names and labels are those of kube-apiserver.
func TestMetrics(t *testing.T) {
	cl, _ := start(t)
	ok(t, "namespace", createNamespace(t, cl, "team", map[string]string{
		"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.30",
		"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/audit-version": "v1.999",
	}))
	ok(t, "in a namespace without labels", createPod(t, cl, "default", privileged()))
	ok(t, "plain", createPod(t, cl, "team", plain()))
	if createPod(t, cl, "team", privileged()) == nil {
		t.Error("a privileged pod is not refused")
	}
	response, err := cl.Raw(t.Context(), client.RawRequest{Path: "/metrics"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	const pod = `request_operation="create",resource="pod",subresource=""} `
	for _, want := range []string{
		`pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",` + pod + "1",
		`pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="baseline",policy_version="v1.30",` + pod + "1",
		`pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="baseline",policy_version="v1.30",` + pod + "1",
		`pod_security_evaluations_total{decision="deny",mode="warn",policy_level="restricted",policy_version="latest",` + pod + "1",
		`pod_security_evaluations_total{decision="deny",mode="audit",policy_level="restricted",policy_version="future",` + pod + "2",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(string(body)) {
			if strings.HasPrefix(line, "pod_security") {
				t.Log(line)
			}
		}
	}
}

// TestLabels: a label that means nothing is refused, and one that makes a namespace
// stricter answers with what violates it.
func TestLabels(t *testing.T) {
	cl, seen := start(t)
	err := createNamespace(t, cl, "wrong", map[string]string{"pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/warn-version": "2"})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be one of privileged, baseline, restricted") || !strings.Contains(err.Error(), `must be "latest" or "v1.x"`) {
		t.Errorf("wrong labels: %v", err)
	}
	ok(t, "namespace", createNamespace(t, cl, "team", nil))
	for range 3 {
		ok(t, "pod", createPod(t, cl, "team", privileged()))
	}
	seen.mustHave(t, "before")
	namespaces := client.For[*corev1.Namespace](cl)
	label := func(level string) {
		t.Helper()
		namespace, err := namespaces.Get(t.Context(), "team", metav1.GetOptions{})
		if err == nil {
			namespace.Labels["pod-security.kubernetes.io/enforce"] = level
			_, err = namespaces.Update(t.Context(), namespace, metav1.UpdateOptions{})
		}
		ok(t, level, err)
	}
	label("baseline")
	seen.mustHave(t, "stricter", `existing pods in namespace "team" violate the new PodSecurity enforce level "baseline:latest"`, "(and 2 other pods): privileged")
	label("privileged")
	seen.mustHave(t, "relaxed")
}

// TestLargePodsAreNotAllDecoded: a namespace may have thousands of pods of megabytes, and a change of its labels, which
// may be a dry run, looks at them.
func TestLargePodsAreNotAllDecoded(t *testing.T) {
	const pods, bytes = 14, 2_600_000 // more than 32 MiB
	cl, seen := start(t)
	ok(t, "namespace", createNamespace(t, cl, "team", nil))
	large := privileged()
	large.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", bytes)}}
	for range pods {
		ok(t, "pod", createPod(t, cl, "team", large))
	}
	namespaces := client.For[*corev1.Namespace](cl)
	namespace, err := namespaces.Get(t.Context(), "team", metav1.GetOptions{})
	ok(t, "namespace", err)
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
	_, err = namespaces.Update(t.Context(), namespace, metav1.UpdateOptions{})
	ok(t, "label", err)
	seen.mustHave(t, "stricter", "only checked against the first 12 of 14 existing pods", `existing pods in namespace "team" violate`)
}

// TestConfigurationFile: defaults and exemptions of a file.
func TestConfigurationFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	content := `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: latest}
    exemptions: {namespaces: [exempt]}
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cl, seen := start(t, func(c *server.Config) { c.AdmissionConfigFile = file })
	if err := createPod(t, cl, "default", privileged()); !apierrors.IsForbidden(err) {
		t.Errorf("the default level: %v", err)
	}
	ok(t, "namespace", createNamespace(t, cl, "exempt", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}))
	seen.mustHave(t, "exempt", `namespace "exempt" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored`)
	ok(t, "an exempt pod", createPod(t, cl, "exempt", privileged()))

	for text, problem := range map[string]string{
		"kind: Pod": "kind must be AdmissionConfiguration",
		strings.Replace(content, "name: PodSecurity", "name: Priority", 1): `the admission plugin "Priority" cannot be configured here`,
		strings.Replace(content, "baseline", "strict", 1):                  "must be one of privileged, baseline, restricted",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := server.Listen(server.Config{DataDir: t.TempDir(), AdmissionConfigFile: file})
		if err == nil || !strings.Contains(fmt.Sprint(err), problem) || !strings.Contains(fmt.Sprint(err), "--admission-control-config-file") {
			t.Errorf("got %v, want %q", err, problem)
		}
	}
}
