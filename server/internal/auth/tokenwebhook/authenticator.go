// Package tokenwebhook authenticates bearer tokens by asking another server, which
// answers TokenReviews ("Webhook Token Authentication" in Kubernetes' documentation).
package tokenwebhook

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/util/webhook"
	upstream "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/tokencache"
)

// timeout bounds a question to the webhook, repetitions included.
const timeout = 10 * time.Second

// Options are the options of an Authenticator.
type Options struct {
	// Version is that of the TokenReviews: v1 or v1beta1.
	Version string
	// TTL is how long an answer is remembered, whatever it is.
	TTL time.Duration
	// Audiences are this server's. A webhook that does not know audiences authenticates
	// for them.
	Audiences []string
	// Metrics counts what is remembered; nil: nothing does.
	Metrics *tokencache.Metrics
}

// Authenticator asks a webhook. It is safe for concurrent use.
type Authenticator struct {
	opts    Options
	current atomic.Pointer[tokencache.Cache]
}

// New returns an Authenticator. Load must be called before it is used.
func New(opts Options) *Authenticator { return &Authenticator{opts: opts} }

// Load reads the kubeconfig of the webhook: the cluster is the webhook, the user is what
// this server authenticates itself by. What the webhook has answered before is forgotten.
// An error leaves in force what was there before.
func (a *Authenticator) Load(path string) error {
	config, err := webhook.LoadKubeconfig(path, nil)
	if err != nil {
		return err
	}
	return a.Use(config)
}

// Use asks the server that a configuration says from now on. Its host has the path that
// TokenReviews are sent to.
func (a *Authenticator) Use(config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	client, err := upstream.New(config, a.opts.Version, a.opts.Audiences, *upstream.DefaultRetryBackoff())
	if err != nil {
		return err
	}
	a.current.Store(tokencache.New(reviewer{client}, tokencache.Options{Success: a.opts.TTL, Failure: a.opts.TTL, Timeout: timeout, Metrics: a.opts.Metrics}))
	return nil
}

// AuthenticateToken implements auth.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (auth.Identity, error) {
	return a.current.Load().AuthenticateToken(ctx, token, audiences)
}

// reviewer asks the webhook each time.
type reviewer struct{ client authenticator.Token }

func (r reviewer) AuthenticateToken(ctx context.Context, token string, audiences []string) (auth.Identity, error) {
	if len(audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, audiences)
	}
	response, ok, err := r.client.AuthenticateToken(ctx, token)
	switch {
	case err != nil:
		// The webhook could not be asked, or says why it refuses; these look alike.
		return auth.Identity{}, fmt.Errorf("%w: webhook: %w", tokencache.ErrUnavailable, err)
	case !ok:
		return auth.Identity{}, auth.ErrUnknownToken
	case response.User.GetName() == "":
		return auth.Identity{}, errors.New("webhook: the user has no name")
	}
	user := response.User
	return auth.Identity{
		User:      auth.User{Name: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups(), Extra: user.GetExtra()},
		Audiences: response.Audiences,
	}, nil
}
