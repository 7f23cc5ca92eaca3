package bootstraptoken

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/auth"
)

const token = "abcdef.0123456789abcdef"

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// secretOf is the secret of token, with changes.
func secretOf(changes map[string]string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			idKey: []byte("abcdef"), secretKey: []byte("0123456789abcdef"), usageKey: []byte("true"),
			expirationKey: []byte("2030-01-01T00:00:01Z"), groupsKey: []byte("system:bootstrappers:kubeadm:default-node-token"),
		},
	}
	for key, value := range changes {
		s.Data[key] = []byte(value)
		if value == "" {
			delete(s.Data, key)
		}
	}
	return s
}

func authenticate(s *corev1.Secret, token string) (auth.Identity, error) {
	a := New(func(_ context.Context, name string) (*corev1.Secret, error) {
		if s == nil || name != s.Name {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
		}
		return s, nil
	}, func() time.Time { return now })
	return a.AuthenticateToken(context.Background(), token, nil)
}

func TestBootstrapToken(t *testing.T) {
	identity, err := authenticate(secretOf(nil), token)
	if want := []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"}; err != nil ||
		identity.User.Name != "system:bootstrap:abcdef" || !slices.Equal(identity.User.Groups, want) {
		t.Errorf("%+v, %v", identity, err)
	}
	if identity, err = authenticate(secretOf(map[string]string{groupsKey: "", expirationKey: ""}), token); err != nil || len(identity.User.Groups) != 1 {
		t.Errorf("%+v, %v", identity, err)
	}
}

func TestRefusedBootstrapTokens(t *testing.T) {
	for name, s := range map[string]*corev1.Secret{
		"expired":           secretOf(map[string]string{expirationKey: "2030-01-01T00:00:00Z"}),
		"no time":           secretOf(map[string]string{expirationKey: "tomorrow"}),
		"another secret":    secretOf(map[string]string{secretKey: "0123456789abcdeg"}),
		"no secret":         secretOf(map[string]string{secretKey: ""}),
		"another id":        secretOf(map[string]string{idKey: "abcdeg"}),
		"for signing only":  secretOf(map[string]string{usageKey: "false"}),
		"no usage":          secretOf(map[string]string{usageKey: ""}),
		"a group of others": secretOf(map[string]string{groupsKey: "system:bootstrappers:a,system:masters"}),
		"an empty group":    secretOf(map[string]string{groupsKey: "system:bootstrappers:a,"}),
		"another type":      func() *corev1.Secret { s := secretOf(nil); s.Type = corev1.SecretTypeOpaque; return s }(),
		"being deleted":     func() *corev1.Secret { s := secretOf(nil); s.DeletionTimestamp = &metav1.Time{Time: now}; return s }(),
	} {
		if identity, err := authenticate(s, token); err == nil || errors.Is(err, auth.ErrUnknownToken) {
			t.Errorf("%s: %+v, %v", name, identity, err)
		}
	}
	for _, unknown := range []string{"", "abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", token + "\n", "../../a.0123456789abcdef", "ffffff.0123456789abcdef"} {
		if _, err := authenticate(secretOf(nil), unknown); !errors.Is(err, auth.ErrUnknownToken) {
			t.Errorf("%q: %v", unknown, err)
		}
	}
}
