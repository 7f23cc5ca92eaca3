package authenticationconfig

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/tokencache"
)

// Options are the options of an Authenticator.
type Options struct {
	// DisallowedIssuers are the server's own issuers, of service accounts: the file may
	// not name them.
	DisallowedIssuers []string
	// CheckAnonymous returns why the file may not allow requests without credentials, on
	// every path or on some. Optional.
	CheckAnonymous func(everywhere bool) error
	// Metrics counts what is remembered of tokens; nil: nothing does.
	Metrics *tokencache.Metrics
	// Examined counts the tokens that were not remembered; nil: nothing does.
	Examined *Metrics
}

// Authenticator authenticates users by the file that was loaded last. It is safe for
// concurrent use.
type Authenticator struct {
	opts     Options
	compiler authenticationcel.Compiler
	ctx      context.Context //nolint:containedctx // It is the lifetime of the issuers, as the library wants it.
	cancel   context.CancelFunc

	loading sync.Mutex // held while a file is loaded
	current atomic.Pointer[loaded]
}

// loaded is what a file says.
type loaded struct {
	config  *apiserver.AuthenticationConfiguration
	issuers []*issuer
}

// New returns an Authenticator. Load must be called before it is used. The caller must
// call Close.
func New(opts Options) *Authenticator {
	ctx, cancel := context.WithCancel(context.Background())
	return &Authenticator{opts: opts, compiler: authenticationcel.NewDefaultCompiler(), ctx: ctx, cancel: cancel}
}

// Close ends what the Authenticator does in the background. It accepts no token any more.
func (a *Authenticator) Close() {
	a.loading.Lock()
	defer a.loading.Unlock()
	a.cancel()
	if now := a.current.Load(); now != nil {
		for _, i := range now.issuers {
			i.close()
		}
	}
}

// Load makes a file count at once. It does not wait for issuers: until one has answered,
// its tokens are refused, or, if only its configuration has changed, judged by the former
// one for at most 10 s. An error leaves in force what was there before.
func (a *Authenticator) Load(data []byte) error {
	config, err := parse(data, a.compiler, a.opts.DisallowedIssuers)
	if err != nil {
		return err
	}
	if anonymous := config.Anonymous; anonymous != nil && a.opts.CheckAnonymous != nil {
		if err := a.opts.CheckAnonymous(anonymous.Enabled && len(anonymous.Conditions) == 0); err != nil {
			return err
		}
	}
	a.loading.Lock()
	defer a.loading.Unlock()
	next := &loaded{config: config}
	var before []*issuer
	if now := a.current.Load(); now != nil {
		before = now.issuers
	}
	if next.issuers, err = a.issuers(config.JWT, before); err != nil {
		return err
	}
	a.current.Store(next)
	for _, i := range before {
		a.retire(i, next.issuers)
	}
	forgetKeys(before, next.issuers)
	return nil
}

// forgetKeys takes the issuers that are gone out of the library's metrics of fetched keys.
func forgetKeys(before, inForce []*issuer) {
	for _, i := range before {
		url := i.config.Issuer.URL
		if !slices.ContainsFunc(inForce, func(next *issuer) bool { return next.config.Issuer.URL == url }) {
			oidc.DeleteJWKSFetchMetrics(url, serverID)
		}
	}
}

// issuers returns an issuer for each configuration: one of before if it is the same.
func (a *Authenticator) issuers(configs []apiserver.JWTAuthenticator, before []*issuer) ([]*issuer, error) {
	var made, all []*issuer
	for _, config := range configs {
		k := slices.IndexFunc(before, func(i *issuer) bool { return i.config.Issuer.URL == config.Issuer.URL })
		if k >= 0 && reflect.DeepEqual(before[k].config, config) {
			all = append(all, before[k])
			continue
		}
		i, err := newIssuer(a.ctx, config, a.compiler, &a.opts)
		if err != nil {
			for _, i := range made {
				i.close()
			}
			return nil, err
		}
		switch {
		case k < 0:
		case before[k].tokens.HealthCheck() == nil:
			i.former, i.until = before[k], time.Now().Add(switchover)
		default:
			i.former, i.until = before[k].former, before[k].until
		}
		made, all = append(made, i), append(all, i)
	}
	return all, nil
}

// retire ends an issuer that is not in force any more: at once, or, if it judges tokens
// for its successor, when that is over.
func (a *Authenticator) retire(i *issuer, inForce []*issuer) {
	switch {
	case slices.Contains(inForce, i):
	case slices.ContainsFunc(inForce, func(next *issuer) bool { return next.former == i }):
		time.AfterFunc(switchover+tokenTimeout, i.close)
	default:
		i.close()
	}
}

// AuthenticateToken implements auth.TokenAuthenticator. It asks the issuer that the token
// names; names are unique.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (auth.Identity, error) {
	now := a.current.Load()
	if len(now.issuers) == 0 {
		return auth.Identity{}, auth.ErrUnknownToken
	}
	if claims, ok := unverified(token); ok {
		for _, i := range now.issuers {
			if i.config.Issuer.URL == claims.Issuer {
				return i.authenticate(ctx, token)
			}
		}
	}
	return auth.Identity{}, auth.ErrUnknownToken
}

// Anonymous returns whether a path is answered without credentials; said is false if the
// file does not say.
func (a *Authenticator) Anonymous(path string) (allowed, said bool) {
	config := a.current.Load().config.Anonymous
	if config == nil {
		return false, false
	}
	return anonymousOn(config, path), true
}
