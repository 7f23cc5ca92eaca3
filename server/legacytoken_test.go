package server_test

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
)

// TestLegacyTokenOfARequest: the use is noted in the secret and in the audit log, and a label refuses
// the token.
func TestLegacyTokenOfARequest(t *testing.T) {
	ctx := deadline(t)
	s, path := audited(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n")
	admin := s.client(t)
	secrets := client.For[*corev1.Secret](admin).Namespace("default")
	_, err := secrets.Create(ctx, &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
		Name: "robot", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"},
	}}, metav1.CreateOptions{})
	must(t, err)
	filled := awaitSecret(ctx, t, secrets, func(s *corev1.Secret) bool { return len(s.Data[corev1.ServiceAccountTokenKey]) > 0 })
	robot := &rest.Config{Host: s.URL(), BearerToken: string(filled.Data[corev1.ServiceAccountTokenKey]), TLSClientConfig: rest.TLSClientConfig{CAData: s.adminConfig(t).CAData}}
	if code, body := s.fetch(t, robot, "/version?by=robot"); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	awaitSecret(ctx, t, secrets, func(s *corev1.Secret) bool { return s.Labels["kubernetes.io/legacy-token-last-used"] != "" })
	_, err = secrets.Patch(ctx, "robot", types.MergePatchType, []byte(`{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-01-01"}}}`), metav1.PatchOptions{})
	must(t, err)
	if code, body := s.fetch(t, robot, "/version?by=marked"); code != http.StatusUnauthorized {
		t.Errorf("a token that is marked as invalid: %d %s", code, body)
	}
	admin.CloseIdleConnections()
	s.stop(t)
	for by, want := range map[string]map[string]string{
		"by=robot":  {"authentication.k8s.io/legacy-token-manual-secret": "robot"},
		"by=marked": {"authentication.k8s.io/legacy-token-invalidated": "robot/default"},
	} {
		events := auditLog(t, path, by)
		if want := map[string]int{"by=robot": 2, "by=marked": 1}[by]; len(events) != want { // refused credentials have one event
			t.Errorf("%s has %d audit events, want %d", by, len(events), want)
		}
		for _, event := range events {
			for key, value := range want {
				if got := event.Annotations[key]; got != value {
					t.Errorf("%s, %s: %s is %q, want %q", by, event.Stage, key, got, value)
				}
			}
			if decision := event.Annotations["authorization.k8s.io/decision"]; event.Stage == auditv1.StageRequestReceived && decision != "" {
				t.Errorf("%s: %s has the later decision %q", by, event.Stage, decision)
			}
		}
	}
}

// awaitSecret returns the first state of the secret "robot" that fits.
func awaitSecret(ctx context.Context, t *testing.T, secrets client.Resource[*corev1.Secret], fits func(*corev1.Secret) bool) *corev1.Secret {
	t.Helper()
	w, err := secrets.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=robot"})
	must(t, err)
	seen := testwait.Events(t, "the secret fits", testwait.Follow(t, w), testwait.Last(func(event client.WatchEvent[*corev1.Secret]) bool {
		return event.Object != nil && fits(event.Object)
	}))
	return seen[len(seen)-1].Object
}
