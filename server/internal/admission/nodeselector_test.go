package admission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/admission"
)

// TestPodNodeSelectorFile: the file says which nodes pods select in namespaces without the
// annotation, and which labels the pods of a namespace may select at all.
func TestPodNodeSelectorFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("admission.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: PodNodeSelector, path: selectors.yaml}]\n")
	write("selectors.yaml", "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: env=shared\n  annotated: env=own,disk=ssd\n")
	s := levelwiretest.Start(t, func(c *server.Config) {
		c.EnableAdmissionPlugins, c.AdmissionConfigFile = []string{admission.PodNodeSelector}, file
	})
	cl := s.Client(client.Options{})
	for name, annotations := range map[string]map[string]string{
		"plain": nil, "annotated": {"scheduler.alpha.kubernetes.io/node-selector": "env=own"}, "free": {"scheduler.alpha.kubernetes.io/node-selector": ""},
		"malformed": {"scheduler.alpha.kubernetes.io/node-selector": "a"},
	} {
		must[*corev1.Namespace](t, name)(client.For[*corev1.Namespace](cl).Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		}, metav1.CreateOptions{}))
	}
	for name, test := range map[string]struct {
		namespace, selects, got, refusal string
	}{
		"default":     {"plain", "", "env=shared", ""},
		"conflict":    {"plain", "env=own", "", "conflicts with its namespace node label selector"},
		"annotation":  {"annotated", "", "env=own", ""},
		"allowed":     {"annotated", "disk=ssd", "disk=ssd,env=own", ""},
		"not allowed": {"annotated", "disk=hdd", "", "conflict with its namespace whitelist"},
		"unknown":     {"annotated", "zone=a", "", "conflict with its namespace whitelist"},
		"no labels":   {"free", "", "", ""},
		"malformed":   {"malformed", "", "", "of namespace malformed must be labels"},
	} {
		selector, err := metav1.ParseToLabelSelector(test.selects)
		if err != nil {
			t.Fatal(err)
		}
		pod := newPod(strings.ReplaceAll(name, " ", "-"), func(s *corev1.PodSpec) { s.NodeSelector = selector.MatchLabels })
		made, err := client.For[*corev1.Pod](cl).Namespace(test.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if test.refusal != "" {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("%s: %v, want %q", name, err, test.refusal)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(made.Spec.NodeSelector)); got != test.got && (test.got != "" || len(made.Spec.NodeSelector) > 0) {
			t.Errorf("%s: selects %s, want %s", name, got, test.got)
		}
	}

	for content, problem := range map[string]string{
		"podNodeSelectorPluginConfig:\n  a: 'b in (c)'\n": "podNodeSelectorPluginConfig: a: ", "other: 1\n": "unknown field", "{}": "it has no podNodeSelectorPluginConfig",
	} {
		write("selectors.yaml", content)
		if _, err := server.Listen(server.Config{DataDir: t.TempDir(), AdmissionConfigFile: file}); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, want %q", content, err, problem)
		}
	}
}
