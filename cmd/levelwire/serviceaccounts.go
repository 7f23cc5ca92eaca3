package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clienttransport "k8s.io/client-go/transport"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/subresource"
)

const (
	// tokenLifetime is how long a controller's token is asked to be valid. It is replaced
	// after four fifths of it.
	tokenLifetime = time.Hour
	// minTokenUse is how long a token is used at least, so that a clock that is wrong does
	// not make each request ask for another one. A token that the server refuses is
	// replaced at once.
	minTokenUse = time.Minute
	// tokenTimeout is how long a request for a token may take.
	tokenTimeout = 30 * time.Second
)

// accountClients makes clients that are service accounts in kube-system, each by a token
// that the server issues for it, as kube-controller-manager does with
// --use-service-account-credentials.
type accountClients struct {
	config *rest.Config   // how to reach the server; its credentials are not used
	issuer *client.Client // creates the accounts and their tokens
	agent  string
	log    *slog.Logger
	made   []*client.Client
}

// client returns the client of a service account. It sends nothing: the first request asks
// for a token, and creates the account if there is none. No token is asked for after ctx
// ends.
func (a *accountClients) client(ctx context.Context, account string) (*client.Client, error) {
	source := &tokenSource{account: account, issuer: a.issuer, context: func() context.Context { return ctx }, log: a.log, logged: rate.Sometimes{First: 1, Interval: time.Minute}}
	config := rest.AnonymousClientConfig(a.config)
	config.Wrap(clienttransport.ResettableTokenSourceWrapTransport(clienttransport.NewCachedTokenSource(source)))
	c, err := newComponentClient(config, clientOptions(a.agent))
	if err == nil {
		a.made = append(a.made, c)
	}
	return c, err
}

// close closes the clients' connections, when nothing uses them any more.
func (a *accountClients) close() {
	for _, c := range a.made {
		c.CloseIdleConnections()
	}
}

// tokenSource asks for tokens of one service account. Its caller keeps them: client-go's
// cache, which calls it once at a time.
type tokenSource struct {
	account string
	issuer  *client.Client
	context func() context.Context // Token has none
	log     *slog.Logger
	logged  rate.Sometimes
}

// Token returns a new token, which expires when it should be replaced.
func (s *tokenSource) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(s.context(), tokenTimeout)
	defer cancel()
	status, err := s.create(ctx)
	if err != nil {
		err = fmt.Errorf("token of service account %s/%s: %w", metav1.NamespaceSystem, s.account, err)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			s.logged.Do(func() {
				s.log.Error("a controller cannot act: --use-service-account-credentials needs the rights of the role system:kube-controller-manager, and the namespace kube-system", "err", err)
			})
		}
		return nil, err
	}
	use := time.Until(status.ExpirationTimestamp.Time) * 4 / 5
	return &oauth2.Token{AccessToken: status.Token, Expiry: time.Now().Add(max(use, minTokenUse))}, nil
}

func (s *tokenSource) create(ctx context.Context) (authenticationv1.TokenRequestStatus, error) {
	accounts := client.For[*corev1.ServiceAccount](s.issuer).Namespace(metav1.NamespaceSystem)
	seconds := int64(tokenLifetime.Seconds())
	spec := authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}
	status, err := subresource.CreateToken(ctx, accounts, s.account, spec)
	if !apierrors.IsNotFound(err) {
		return status, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: s.account, Namespace: metav1.NamespaceSystem}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return status, err
	}
	return subresource.CreateToken(ctx, accounts, s.account, spec)
}
