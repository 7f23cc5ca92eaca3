package eventratelimit_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/admission/eventratelimit"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"

// TestLimits: each scope has buckets of its own, which fill again as time goes by.
func TestLimits(t *testing.T) {
	events := builtin.Table().Lookup("", "v1", "events")
	type event struct{ namespace, user, component, object string }
	first := event{"a", "u", "c", "o"}
	for scope, sharing := range map[string]event{
		"Server": {"b", "v", "d", "p"}, "Namespace": {"a", "v", "d", "p"}, "User": {"b", "u", "d", "p"}, "SourceAndObject": {"b", "v", "c", "o"},
	} {
		config, err := eventratelimit.ParseConfig([]byte(header + "limits: [{type: " + scope + ", qps: 1, burst: 2}]"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		plugin := eventratelimit.New(config, func() time.Time { return now })
		write := func(e event, dry bool) error {
			ctx := auth.WithUser(context.Background(), auth.User{Name: e.user})
			return plugin.Validate(ctx, &registry.Request{
				Operation: registry.Create, Resource: events, Namespace: e.namespace, DryRun: dry,
				Object: &corev1.Event{Source: corev1.EventSource{Component: e.component}, InvolvedObject: corev1.ObjectReference{Name: e.object}},
			})
		}
		allowed := func(what string, e event, dry, want bool) {
			t.Helper()
			err := write(e, dry)
			if (err == nil) != want || err != nil && (!apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "limit reached on type "+scope+" for key")) {
				t.Errorf("%s: %s: %v", scope, what, err)
			}
		}
		allowed("the first", first, false, true)
		allowed("another of the scope", sharing, false, true)
		allowed("a third", first, false, false)
		allowed("a dry run", first, true, true)
		allowed("elsewhere", event{"x", "x", "x", "x"}, false, scope != "Server")
		now = now.Add(time.Second)
		allowed("a second later", sharing, false, true)
		allowed("and one more", first, false, false)
	}
}

// TestConfiguration: wrong limits are refused with what is wrong, and right ones act.
func TestConfiguration(t *testing.T) {
	for content, problem := range map[string]string{
		header: "limits: Required value: must not be empty",
		header + "limits: [{type: Pod, qps: 1, burst: 1}]":                 `limits[0].type: Unsupported value: "Pod"`,
		header + "limits: [{type: User, burst: 1}]":                        "limits[0].qps: Invalid value: 0: must be positive",
		header + "limits: [{type: User, qps: 1}]":                          "limits[0].burst: Invalid value: 0: must be positive",
		header + "limits: [{type: User, qps: 1, burst: 1, cacheSize: -1}]": "limits[0].cacheSize: Invalid value: -1: must not be negative",
		header + "limit: []":                                               "unknown field",
		"kind: Pod":                                                        "kind must be Configuration",
	} {
		if _, err := eventratelimit.ParseConfig([]byte(content)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %s", content, err, problem)
		}
	}
	file := filepath.Join(t.TempDir(), "admission.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: EventRateLimit\n  configuration:\n" +
		"    apiVersion: eventratelimit.admission.k8s.io/v1alpha1\n    kind: Configuration\n    limits: [{type: Namespace, qps: 1, burst: 1}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := levelwiretest.Start(t, func(c *server.Config) {
		c.AdmissionConfigFile, c.EnableAdmissionPlugins = file, []string{"EventRateLimit"}
	})
	events := client.For[*corev1.Event](s.Client(client.Options{})).Namespace("default")
	for range 1000 {
		_, err := events.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"},
		}, metav1.CreateOptions{})
		if apierrors.IsTooManyRequests(err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("a thousand events were admitted at once")
}
