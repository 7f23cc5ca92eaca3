package admission_test

import (
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestSigningRequestsSayWhoAsked(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	set, err := registry.NewSet(registry.Config{Store: store, Resources: builtin.Table()})
	if err != nil {
		t.Fatal(err)
	}
	setRequester := admission.CertificateRequester(set)
	ctx := auth.WithUser(t.Context(), auth.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"team": {"a"}}})
	request := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Username: "admin", Groups: []string{"system:masters"}}}
	q := &registry.Request{Operation: registry.Create, Object: request}
	if err := setRequester(ctx, q); err != nil {
		t.Fatal(err)
	}
	if s := request.Spec; s.Username != "jane" || s.UID != "7" || !slices.Equal(s.Groups, []string{"dev"}) || s.Extra["team"][0] != "a" {
		t.Errorf("asked for by %+v", s)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	decided := &registry.Request{Operation: registry.Update, Subresource: "approval", Object: request}
	if err := setRequester(ctx, decided); err != nil {
		t.Fatal(err)
	}
	if c := request.Status.Conditions[0]; c.LastUpdateTime.IsZero() || c.LastTransitionTime.IsZero() || request.Spec.Username != "jane" {
		t.Errorf("approved %+v", request)
	}
	if err := setRequester(ctx, &registry.Request{Operation: registry.Delete, Old: &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}); err != nil {
		t.Error(err)
	}
}
