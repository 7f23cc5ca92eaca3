package authenticationconfig

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/tokencache"
)

// switchover is how long an issuer whose configuration has changed may take to be ready,
// while its tokens are judged by the former configuration.
const switchover = 10 * time.Second

// tokenTimeout bounds the examination of a token, for which keys may have to be fetched.
const tokenTimeout = 10 * time.Second

// remembered is how long an accepted token is remembered, as in kube-apiserver.
const remembered = 10 * time.Second

// serverID is in the library's metrics of fetched keys, which are those of the process.
const serverID = ""

// issuer authenticates the tokens of one issuer. It fetches the issuer's keys in the
// background, until they are there, and then whenever a token has an unknown key.
type issuer struct {
	config apiserver.JWTAuthenticator
	tokens oidc.AuthenticatorTokenWithHealthCheck
	cache  *tokencache.Cache // of what tokens has found out
	client *http.Client
	cancel context.CancelFunc
	// examined counts the tokens that the cache asks for; nil: nothing does.
	examined *Metrics

	// former is the issuer by the configuration before, which judges tokens until this one
	// is ready, but not after until; nil if there is none.
	former *issuer
	until  time.Time
}

func newIssuer(ctx context.Context, config apiserver.JWTAuthenticator, compiler authenticationcel.Compiler, opts *Options) (*issuer, error) {
	client, err := newHTTPClient(config.Issuer.CertificateAuthority)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	tokens, err := oidc.New(ctx, oidc.Options{
		JWTAuthenticator: config, Client: client, Compiler: compiler, DisallowedIssuers: opts.DisallowedIssuers,
		SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(), APIServerID: serverID,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	i := &issuer{config: config, tokens: tokens, client: client, cancel: cancel, examined: opts.Examined}
	i.cache = tokencache.New(i, tokencache.Options{Success: remembered, End: endOf, Timeout: tokenTimeout, Metrics: opts.Metrics})
	return i, nil
}

// close ends what the issuer does in the background.
func (i *issuer) close() {
	i.cancel()
	i.client.CloseIdleConnections()
}

// authenticate returns the user of a token that names this issuer.
func (i *issuer) authenticate(ctx context.Context, token string) (auth.Identity, error) {
	if i.former != nil && i.tokens.HealthCheck() != nil && time.Now().Before(i.until) {
		return i.former.authenticate(ctx, token)
	}
	return i.cache.AuthenticateToken(ctx, token, nil)
}

// AuthenticateToken verifies a token. It implements auth.TokenAuthenticator for the cache.
// The tokens are for this server, whatever audiences it has: the configuration names those
// in the issuer's tokens.
func (i *issuer) AuthenticateToken(ctx context.Context, token string, _ []string) (auth.Identity, error) {
	notReady := i.tokens.HealthCheck()
	start := time.Now()
	response, ok, err := i.tokens.AuthenticateToken(ctx, token)
	if ok || err != nil {
		i.examined.examined(i.config.Issuer.URL, start, err)
	}
	switch {
	case err != nil && notReady != nil:
		return auth.Identity{}, fmt.Errorf("%w: issuer %s: %w", tokencache.ErrUnavailable, i.config.Issuer.URL, notReady)
	case err != nil:
		return auth.Identity{}, err
	case !ok:
		return auth.Identity{}, auth.ErrUnknownToken
	case response.User.GetName() == "":
		return auth.Identity{}, errors.New("the token's user has no name")
	}
	user := response.User
	return auth.Identity{User: auth.User{Name: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups(), Extra: user.GetExtra()}}, nil
}

// unverifiedClaims are claims of a token whose signature was not looked at.
type unverifiedClaims struct {
	Issuer string  `json:"iss"`
	End    float64 `json:"exp"`
}

// unverified returns the claims of something that looks like a token.
func unverified(token string) (claims unverifiedClaims, ok bool) {
	_, rest, _ := strings.Cut(token, ".")
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(signature, ".") {
		return claims, false
	}
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(data, &claims) != nil {
		return unverifiedClaims{}, false
	}
	if claims.Issuer == "accounts.google.com" {
		claims.Issuer = "https://" + claims.Issuer // what Google's tokens said once, and the library accepts
	}
	return claims, true
}

// endOf returns when a token ends that was found to be valid.
func endOf(token string) (time.Time, bool) {
	claims, ok := unverified(token)
	return time.Unix(int64(claims.End), 0), ok && claims.End > 0
}
