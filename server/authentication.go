package server

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/authenticationconfig"
	"github.com/levelwire/levelwire/server/internal/auth/bootstraptoken"
	"github.com/levelwire/levelwire/server/internal/auth/tokenwebhook"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// Authentication are the ways to be authenticated that are off by default. They mean what
// kube-apiserver's flags of the same names do: see Kubernetes' documentation,
// "Authenticating".
type Authentication struct {
	// ConfigFile is a file of the kind AuthenticationConfiguration
	// (apiserver.config.k8s.io/v1): issuers of JSON web tokens, with claim mappings and
	// rules in CEL, and which paths are answered without credentials. It is read again
	// when it changes.
	ConfigFile string
	// WebhookConfigFile is a kubeconfig of a server that answers TokenReviews about tokens
	// that are of no other kind. It is read again when it changes.
	WebhookConfigFile string
	// WebhookCacheTTL is how long its answers are remembered. Default 2 min.
	WebhookCacheTTL time.Duration
	// WebhookVersion is the version of these TokenReviews, v1 or v1beta1. Default v1beta1,
	// as in kube-apiserver.
	WebhookVersion string
	// Anonymous says which requests without credentials are made as the user
	// system:anonymous, and not refused with 401: all if it is true, none if it is false.
	// Default (nil): health checks and /version. True needs an authorizer, because
	// AlwaysAllow would allow everybody everything.
	Anonymous *bool
	// BootstrapTokens accepts the tokens in secrets of the type
	// bootstrap.kubernetes.io/token in kube-system.
	BootstrapTokens bool
	// RequestHeader accepts the users that a proxy in front of the server names.
	RequestHeader RequestHeader
	// ProxyClientCertFile and ProxyClientKeyFile are the client certificate, in PEM, by
	// which aggregated servers recognize this one. RequestHeader.ClientCAFile, which has
	// its authority, goes with them. They are read again when they change. Default: a
	// certificate of an authority that the server makes for this alone.
	ProxyClientCertFile, ProxyClientKeyFile string

	open bool // whether the authorizer allows every user everything
}

// RequestHeader says which proxies may name users in headers, and in which.
type RequestHeader struct {
	// ClientCAFile has the authorities, in PEM, that certify proxies. Without it, no
	// proxy is believed.
	ClientCAFile string
	// AllowedNames are the common names of proxies' certificates. None: all that the
	// authorities have certified. They must be set if one of these authorities certifies
	// users, too.
	AllowedNames []string
	// UsernameHeaders, UIDHeaders and GroupHeaders name the headers, and
	// ExtraHeadersPrefix begins the names of those with further information. Defaults
	// X-Remote-User, X-Remote-Uid, X-Remote-Group and X-Remote-Extra-.
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraHeadersPrefix []string
}

// complete fills in defaults and refuses what makes no sense.
func (a *Authentication) complete(authorizationModes []string) error {
	a.open = slices.Contains(authorizationModes, alwaysAllow)
	if a.Anonymous != nil && *a.Anonymous && a.open {
		return fmt.Errorf("--anonymous-auth %w", errOpen)
	}
	if err := a.completeWebhook(); err != nil {
		return err
	}
	if err := a.completeFrontProxy(); err != nil {
		return err
	}
	h := &a.RequestHeader
	if h.ClientCAFile == "" {
		if len(h.AllowedNames)+len(h.UsernameHeaders)+len(h.UIDHeaders)+len(h.GroupHeaders)+len(h.ExtraHeadersPrefix) > 0 {
			return errors.New("the --requestheader flags need --requestheader-client-ca-file, the authority that certifies the proxy")
		}
		return nil
	}
	for _, names := range []struct {
		flag, byDefault string
		values          *[]string
	}{
		{"username-headers", "X-Remote-User", &h.UsernameHeaders}, {"uid-headers", "X-Remote-Uid", &h.UIDHeaders},
		{"group-headers", "X-Remote-Group", &h.GroupHeaders}, {"extra-headers-prefix", "X-Remote-Extra-", &h.ExtraHeadersPrefix},
	} {
		if len(*names.values) == 0 {
			*names.values = []string{names.byDefault}
		}
		for _, value := range *names.values {
			if strings.TrimSpace(value) == "" {
				return fmt.Errorf("--requestheader-%s: an empty name of a header", names.flag)
			}
		}
	}
	return nil
}

// errOpen refuses to be open to everybody.
var errOpen = errors.New("would allow everybody everything with --authorization-mode=AlwaysAllow")

func (a *Authentication) completeWebhook() error {
	if a.WebhookConfigFile == "" && (a.WebhookCacheTTL != 0 || a.WebhookVersion != "") {
		return errors.New("the --authentication-token-webhook flags need --authentication-token-webhook-config-file, the kubeconfig of the webhook")
	}
	setDefault(&a.WebhookCacheTTL, 2*time.Minute)
	switch a.WebhookVersion {
	case "":
		a.WebhookVersion = "v1beta1"
	case "v1", "v1beta1":
	default:
		return fmt.Errorf("--authentication-token-webhook-version %q is neither v1 nor v1beta1", a.WebhookVersion)
	}
	return nil
}

// checkAnonymous returns why the file of the configuration may not allow requests without
// credentials.
func (a *Authentication) checkAnonymous(everywhere bool) error {
	switch {
	case a.Anonymous != nil:
		return errors.New("anonymous: --anonymous-auth says it already: use one of them")
	case everywhere && a.open:
		return fmt.Errorf("anonymous: enabled without conditions %w", errOpen)
	}
	return nil
}

// authenticationConfigFlag is the flag of the file with issuers of tokens.
const authenticationConfigFlag = "authentication-config"

// readTokenAuthenticators reads the files about tokens that other servers vouch for. It
// comes last, because issuers are contacted from then on.
func (id *identity) readTokenAuthenticators(c *Config) error {
	a := &c.Authentication
	if path := a.WebhookConfigFile; path != "" {
		audiences := c.APIAudiences
		if len(audiences) == 0 {
			audiences = c.ServiceAccountIssuers[:1]
		}
		id.webhook = tokenwebhook.New(tokenwebhook.Options{Version: a.WebhookVersion, TTL: a.WebhookCacheTTL, Audiences: audiences, Metrics: id.tokenCache})
		err := id.files.Watch("authentication-token-webhook-config-file", []string{path}, func([][]byte) error { return id.webhook.Load(path) })
		if err != nil {
			return err
		}
	}
	if a.ConfigFile == "" {
		return nil
	}
	id.structured = authenticationconfig.New(authenticationconfig.Options{
		DisallowedIssuers: c.ServiceAccountIssuers, CheckAnonymous: a.checkAnonymous, Metrics: id.tokenCache, Examined: id.examined,
	})
	err := id.files.Watch(authenticationConfigFlag, []string{a.ConfigFile}, func(contents [][]byte) error { return id.structured.Load(contents[0]) })
	if err != nil {
		id.close()
	}
	return err
}

// close ends what the identity does in the background.
func (id *identity) close() {
	if id.structured != nil {
		id.structured.Close()
	}
}

// readRequestHeader reads the authorities that certify proxies.
func (id *identity) readRequestHeader(h RequestHeader) error {
	if h.ClientCAFile == "" {
		return nil
	}
	id.requestHeader = &authentication.RequestHeader{
		CAs: authentication.NewAuthorities(nil), AllowedNames: h.AllowedNames, UsernameHeaders: h.UsernameHeaders,
		UIDHeaders: h.UIDHeaders, GroupHeaders: h.GroupHeaders, ExtraHeaderPrefixes: h.ExtraHeadersPrefix,
	}
	return id.files.Watch("requestheader-client-ca-file", []string{h.ClientCAFile}, func(contents [][]byte) error {
		certificates, err := parseCertificates(contents[0])
		if err != nil {
			return err
		}
		if err := id.checkOverlap(certificates, id.clientCAs.Certificates()); err != nil {
			return err
		}
		id.requestHeader.CAs.Replace(certificates)
		return nil
	})
}

// errOverlap refuses that users could name other users in headers.
var errOverlap = errors.New("--requestheader-client-ca-file and --client-ca-file have an authority in common, so that its users could say that they are others: set --requestheader-allowed-names to the names of the proxies")

// checkOverlap refuses an authority that certifies both proxies and users, unless the
// names of the proxies are known.
func (id *identity) checkOverlap(proxies, users []*x509.Certificate) error {
	if id.requestHeader == nil || len(id.requestHeader.AllowedNames) > 0 {
		return nil
	}
	roots := x509.NewCertPool()
	for _, p := range proxies {
		roots.AddCert(p)
	}
	for _, u := range users {
		if slices.ContainsFunc(proxies, func(p *x509.Certificate) bool { return sameAuthority(p, u) }) {
			return errOverlap
		}
		// A client sends the certificates between its own and the authority.
		if _, err := u.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: u.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
			return errOverlap
		}
	}
	return nil
}

// sameAuthority reports whether two certificates have one key: a renewed certificate
// verifies what the former one has signed.
func sameAuthority(a, b *x509.Certificate) bool {
	return bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}

// tokenAuthenticators are what bearer tokens are tried by, in this order.
func (s *Server) tokenAuthenticators(writes *writePath) auth.Union {
	union := auth.Union{&s.identity.issued}
	if s.page != nil {
		union = append(union, s.page)
	}
	if s.identity.tokens != nil {
		union = append(union, s.identity.tokens)
	}
	union = append(union, writes.tokens)
	if s.config.Authentication.BootstrapTokens {
		union = append(union, bootstraptoken.New(bootstrapSecrets(writes.set), time.Now))
	}
	if s.identity.structured != nil {
		union = append(union, s.identity.structured)
	}
	if s.identity.webhook != nil {
		union = append(union, s.identity.webhook)
	}
	return union
}

// bootstrapSecrets finds the secrets of bootstrap tokens in the watch cache alone: who
// guesses tokens costs the store nothing.
func bootstrapSecrets(set *registry.Set) bootstraptoken.Secrets {
	return func(ctx context.Context, name string) (*corev1.Secret, error) {
		secrets, ok := set.Lookup("", "v1", "secrets")
		if !ok {
			return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
		}
		snapshot, err := secrets.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		object, ok := snapshot.Get(metav1.NamespaceSystem + "/" + name)
		if !ok {
			return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
		}
		return registry.DecodeAs[*corev1.Secret](ctx, secrets, object)
	}
}

// anonymous returns whether a path is answered without credentials.
func (s *Server) anonymous(path string) bool {
	if s.identity.structured != nil {
		if allowed, said := s.identity.structured.Anonymous(path); said {
			return allowed
		}
	}
	if flag := s.config.Authentication.Anonymous; flag != nil {
		return *flag
	}
	return authentication.NeedsNoCredentials(path)
}
