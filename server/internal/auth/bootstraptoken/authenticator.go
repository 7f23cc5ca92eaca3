// Package bootstraptoken authenticates bootstrap tokens, by which machines join a
// cluster before they have another credential: secrets in kube-system that Kubernetes'
// documentation describes under "Authenticating with Bootstrap Tokens".
package bootstraptoken

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// namePrefix begins the names of the secrets.
const namePrefix = "bootstrap-token-"

// The keys of a secret's data.
const (
	idKey         = "token-id"
	secretKey     = "token-secret"
	expirationKey = "expiration"
	groupsKey     = "auth-extra-groups"
	usageKey      = "usage-bootstrap-authentication"
)

const (
	// userPrefix and the token's id are the user's name.
	userPrefix = "system:bootstrap:"
	// group is the group of every user with a bootstrap token.
	group = "system:bootstrappers"
)

var (
	tokenForm = regexp.MustCompile(`\A([a-z0-9]{6})\.([a-z0-9]{16})\z`)
	// groupForm keeps bootstrap tokens out of groups that mean something else.
	groupForm = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)
)

// Secrets returns a secret of kube-system by its name, from memory, or the error
// NotFound. It is called concurrently.
type Secrets func(ctx context.Context, name string) (*corev1.Secret, error)

// Authenticator authenticates bootstrap tokens. It is safe for concurrent use.
type Authenticator struct {
	secrets Secrets
	now     func() time.Time
}

// New returns an Authenticator by the secrets of a cluster.
func New(secrets Secrets, now func() time.Time) *Authenticator {
	return &Authenticator{secrets: secrets, now: now}
}

// AuthenticateToken implements auth.TokenAuthenticator. It asks for a secret only if the
// token has the form of a bootstrap token.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (auth.Identity, error) {
	parts := tokenForm.FindStringSubmatch(token)
	if parts == nil {
		return auth.Identity{}, auth.ErrUnknownToken
	}
	id, secret := parts[1], parts[2]
	stored, err := a.secrets(ctx, namePrefix+id)
	if apierrors.IsNotFound(err) {
		return auth.Identity{}, auth.ErrUnknownToken
	}
	if err != nil {
		return auth.Identity{}, err
	}
	if err := a.check(stored, id, secret); err != nil {
		return auth.Identity{}, fmt.Errorf("bootstrap token %s: %w", id, err)
	}
	groups, err := groupsOf(stored)
	if err != nil {
		return auth.Identity{}, fmt.Errorf("bootstrap token %s: %w", id, err)
	}
	return auth.Identity{User: auth.User{Name: userPrefix + id, Groups: groups}}, nil
}

// check returns why a secret does not make a token valid; nil if it does.
func (a *Authenticator) check(s *corev1.Secret, id, secret string) error {
	switch {
	case s.DeletionTimestamp != nil:
		return errors.New("its secret is being deleted")
	case s.Type != corev1.SecretTypeBootstrapToken:
		return fmt.Errorf("its secret has the type %q, not %q", s.Type, corev1.SecretTypeBootstrapToken)
	case subtle.ConstantTimeCompare(s.Data[secretKey], []byte(secret)) != 1:
		return errors.New("the part behind the dot is wrong")
	case string(s.Data[idKey]) != id:
		return fmt.Errorf("its secret has another %s", idKey)
	case string(s.Data[usageKey]) != "true":
		return fmt.Errorf("%s of its secret is not true", usageKey)
	}
	expiration := string(s.Data[expirationKey])
	if expiration == "" {
		return nil
	}
	end, err := time.Parse(time.RFC3339, expiration)
	if err != nil {
		return fmt.Errorf("the %s of its secret is no time: %w", expirationKey, err)
	}
	if !a.now().Before(end) {
		return fmt.Errorf("it has expired at %s", metav1.NewTime(end))
	}
	return nil
}

// groupsOf returns the groups of a token's user.
func groupsOf(s *corev1.Secret) ([]string, error) {
	groups := []string{group}
	more := string(s.Data[groupsKey])
	if more == "" {
		return groups, nil
	}
	for name := range strings.SplitSeq(more, ",") {
		if !groupForm.MatchString(name) {
			return nil, fmt.Errorf("%s of its secret has %q, which is not %s and a name", groupsKey, name, group+":")
		}
		groups = append(groups, name)
	}
	return groups, nil
}
