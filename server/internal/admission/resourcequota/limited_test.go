package resourcequota_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

const limitedFile = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes: [{scopeName: PriorityClass, operator: In, values: [cluster-services]}]
    - resource: secrets
      matchContains: [count/]
`

// TestLimitedResources: what the configuration names may be used only where a quota covers
// it, as in the example of the Kubernetes documentation.
func TestLimitedResources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, []byte(limitedFile), 0o600); err != nil {
		t.Fatal(err)
	}
	cl := levelwiretest.Start(t, func(c *server.Config) { c.AdmissionConfigFile = file }).Client(client.Options{})
	if _, err := client.For[*schedulingv1.PriorityClass](cl).Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-services"}, Value: 1000,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := func(name, class string) error {
		_, err := client.For[*corev1.Pod](cl).Namespace("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{PriorityClassName: class, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		return err
	}
	secret := func(name string) error {
		_, err := client.For[*corev1.Secret](cl).Namespace("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	expect := func(err error, refusal string) {
		t.Helper()
		if refusal == "" && err != nil || refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal)) {
			t.Errorf("%v, want %q", err, refusal)
		}
	}
	expect(pod("plain", ""), "")
	expect(pod("a", "cluster-services"), "insufficient quota to match these scopes: PriorityClass In [cluster-services]")
	expect(secret("a"), "insufficient quota to consume: count/secrets")

	// Quotas on something else do not cover them.
	limit(t, cl, "pods", hard("pods", "10"))
	limit(t, cl, "secrets", hard("secrets", "10"))
	expect(pod("a", "cluster-services"), "insufficient quota to match these scopes")
	expect(secret("a"), "insufficient quota to consume: count/secrets")

	scoped := hard("pods", "1")
	scoped.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"cluster-services"}},
	}}
	limit(t, cl, "services", scoped)
	limit(t, cl, "count", hard("count/secrets", "1"))
	expect(pod("a", "cluster-services"), "")
	expect(pod("b", "cluster-services"), "exceeded quota: services")
	expect(secret("a"), "")
	expect(secret("b"), "exceeded quota: count")
	mustUse(t, cl, "services", "pods", "1")
	mustUse(t, cl, "pods", "pods", "1") // "plain" came before it
}

// TestLimitedResourcesAreValidated lists mistakes.
func TestLimitedResourcesAreValidated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	for from, to := range map[string][2]string{
		"kind: ResourceQuotaConfiguration": {"kind: Other", "kind must be ResourceQuotaConfiguration"},
		"resource: pods":                   {"apiGroup: apps", "resource is required"},
		"resource: secrets":                {"resource: events", "quotas do not limit events"},
		"limitedResources":                 {"limited", "unknown field"},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(limitedFile, from, to[0], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Listen(server.Config{DataDir: t.TempDir(), AdmissionConfigFile: file}); err == nil || !strings.Contains(fmt.Sprint(err), to[1]) {
			t.Errorf("%s: %v, want %q", to[0], err, to[1])
		}
	}
}
