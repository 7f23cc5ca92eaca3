package admission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/admission"
)

// TestPodTolerationRestriction: a namespace's annotations, or else the file's, say what
// pods tolerate and may tolerate.
func TestPodTolerationRestriction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: PodTolerationRestriction\n  configuration:\n" +
		"    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\n    kind: Configuration\n    default: [{key: cluster, operator: Exists}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := levelwiretest.Start(t, func(c *server.Config) {
		c.EnableAdmissionPlugins, c.AdmissionConfigFile = []string{admission.PodTolerationRestriction}, file
		c.DisableAdmissionPlugins = []string{admission.DefaultTolerationSeconds}
	})
	cl := s.Client(client.Options{})
	namespace := func(name, defaults, allowed string) {
		t.Helper()
		must[*corev1.Namespace](t, name)(client.For[*corev1.Namespace](cl).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{
				"scheduler.alpha.kubernetes.io/defaultTolerations": defaults, "scheduler.alpha.kubernetes.io/tolerationsWhitelist": allowed,
			},
		}}, metav1.CreateOptions{}))
	}
	tolerates := func(keys ...string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			for _, key := range keys {
				s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
			}
		}
	}
	busy := func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}
	namespace("own", `[{"key":"own","operator":"Exists"}]`, "")
	namespace("strict", "", `[{"key":"allowed","operator":"Exists"}]`)
	namespace("broken", "[", "")
	for what, test := range map[string]struct {
		namespace string
		pod       *corev1.Pod
		want      string
		says      string
	}{
		"the cluster's":              {"default", newPod("a"), "cluster", ""},
		"merged with the pod's":      {"default", newPod("b", tolerates("mine", "cluster")), "mine cluster", ""},
		"the namespace's":            {"own", newPod("a"), "own", ""},
		"requests":                   {"own", newPod("b", busy), "own node.kubernetes.io/memory-pressure", ""},
		"none by default":            {"strict", newPod("a"), "", ""},
		"an allowed one":             {"strict", newPod("b", tolerates("allowed")), "allowed", ""},
		"one that is not":            {"strict", newPod("c", tolerates("other")), "", "conflict with its namespace whitelist"},
		"an annotation without JSON": {"broken", newPod("a"), "", "must be a JSON list of tolerations"},
	} {
		made, err := client.For[*corev1.Pod](cl).Namespace(test.namespace).Create(t.Context(), test.pod, metav1.CreateOptions{})
		if test.says != "" {
			mustSay(t, what, err, test.says)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var keys []string
		for _, toleration := range made.Spec.Tolerations {
			keys = append(keys, toleration.Key)
		}
		if got := strings.Join(keys, " "); got != test.want {
			t.Errorf("%s: %s, want %s", what, got, test.want)
		}
	}
}
