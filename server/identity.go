package server

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/cert"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/authenticationconfig"
	"github.com/levelwire/levelwire/server/internal/auth/tokencache"
	"github.com/levelwire/levelwire/server/internal/auth/tokenwebhook"
	"github.com/levelwire/levelwire/server/internal/filewatch"
	"github.com/levelwire/levelwire/server/internal/relay"
	"github.com/levelwire/levelwire/server/internal/serviceaccount"
	"github.com/levelwire/levelwire/storage"
)

// identity holds the server's certificate and keys, and what clients are
// authenticated by. Configured files are read again when they change.
type identity struct {
	files        *filewatch.Watcher
	certificates *certificates
	clientCAs    *authentication.Authorities
	// requestHeader accepts users that a proxy names; nil if none does.
	requestHeader *authentication.RequestHeader
	// frontProxy makes aggregated servers believe this one.
	frontProxy *frontProxy
	// structured authenticates by --authentication-config, and webhook by
	// --authentication-token-webhook-config-file; nil without them.
	structured *authenticationconfig.Authenticator
	webhook    *tokenwebhook.Authenticator
	tokenCache *tokencache.Metrics // of these two
	examined   *authenticationconfig.Metrics
	// rootCA, in PEM, verifies the serving certificate with which the server started.
	rootCA []byte
	// tokenKeys sign and verify the tokens of service accounts.
	tokenKeys *serviceaccount.KeyRing
	// tokens authenticates the bearer tokens of a file; nil if there is none.
	tokens auth.TokenAuthenticator
	// issued authenticates the users of Server.UserTokenConfig.
	issued auth.IssuedTokens
}

// prepareIdentity loads or makes certificates and keys and writes the admin's
// kubeconfig for the address that the server listens on. now is the clock by which
// certificates expire, for clients too: it is not Config.Now.
func (c *Config) prepareIdentity(address *net.TCPAddr, now func() time.Time) (*identity, error) {
	dir := filepath.Join(c.DataDir, "pki")
	authority, err := pki.LoadOrCreateAuthority(dir, now)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	id := &identity{files: filewatch.New(c.Logger), tokenCache: tokencache.NewMetrics(), examined: authenticationconfig.NewMetrics()}
	id.certificates = &certificates{
		dir: dir, authority: authority, hosts: c.servingHosts(), certFile: c.TLSCertFile, keyFile: c.TLSKeyFile,
		kubeconfig: c.kubeconfigPath(), url: urlOf(address), admin: adminUser,
	}
	if c.Relay != nil {
		id.certificates.admin = relay.Administrator
	}
	if id.rootCA, err = id.certificates.renew(); err != nil {
		return nil, err
	}
	if err := id.watchServing(c); err != nil {
		return nil, err
	}
	if err := id.readClients(c, authority.Certificate()); err != nil {
		return nil, err
	}
	if err := id.readRequestHeader(c.Authentication.RequestHeader); err != nil {
		return nil, err
	}
	if err := id.readFrontProxy(c); err != nil {
		return nil, err
	}
	if err := id.readTokenKeys(c, dir); err != nil {
		return nil, err
	}
	return id, id.readTokenAuthenticators(c)
}

// watchServing reads a configured serving certificate again when it changes.
func (id *identity) watchServing(c *Config) error {
	if c.TLSCertFile == "" {
		return nil
	}
	return id.files.Watch("tls-cert-file", []string{c.TLSCertFile, c.TLSKeyFile}, func([][]byte) error {
		_, err := id.certificates.renew()
		return err
	})
}

// readClients reads what authenticates clients: the server's own authority, another
// one for client certificates, and a file of tokens.
func (id *identity) readClients(c *Config, own *x509.Certificate) error {
	id.clientCAs = authentication.NewAuthorities([]*x509.Certificate{own})
	if c.ClientCAFile != "" {
		err := id.files.Watch("client-ca-file", []string{c.ClientCAFile}, func(contents [][]byte) error {
			further, err := parseCertificates(contents[0])
			if err != nil {
				return err
			}
			users := append(further, own)
			if id.requestHeader != nil {
				if err := id.checkOverlap(id.requestHeader.CAs.Certificates(), users); err != nil {
					return err
				}
			}
			id.clientCAs.Replace(users)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if c.TokenAuthFile == "" {
		return nil
	}
	tokens := auth.NewStaticTokens(nil)
	id.tokens = tokens
	return id.files.Watch("token-auth-file", []string{c.TokenAuthFile}, func(contents [][]byte) error {
		users, err := auth.ParseTokens(contents[0])
		if err != nil {
			return err
		}
		tokens.Replace(users)
		return nil
	})
}

// parseCertificates returns the certificates of a PEM file: at least one, and all of
// them valid.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	certificates, err := cert.ParseCertsPEM(data)
	if err != nil && len(certificates) == 0 {
		return nil, fmt.Errorf("no PEM certificate in the file: %w", err)
	}
	return certificates, err
}

// readTokenKeys reads the configured keys; without a signing key, the server
// makes its own.
func (id *identity) readTokenKeys(c *Config, dir string) error {
	keys := &tokenKeys{ring: &serviceaccount.KeyRing{}}
	id.tokenKeys = keys.ring
	// Before the signing key: if both change at once, tokens of the former key never fail.
	if paths := c.ServiceAccountKeyFiles; len(paths) > 0 {
		if err := id.files.Watch("service-account-key-file", paths, keys.readPublic); err != nil {
			return err
		}
	}
	if path := c.ServiceAccountSigningKeyFile; path != "" {
		return id.files.Watch("service-account-signing-key-file", []string{path}, keys.readSigning)
	}
	own := pki.SigningKeyIn(dir, "service-account")
	if err := own.Ensure(); err != nil {
		return fmt.Errorf("key of service account tokens: %w", err)
	}
	// The private key first: the public ones are written before it.
	return id.files.Watch("service-account-signing-key-file", []string{own.Private, own.Public}, keys.readOwn)
}

// tokenKeys are the keys of a KeyRing, which come from several files.
type tokenKeys struct {
	ring    *serviceaccount.KeyRing
	signing crypto.Signer // nil until it has been read
	public  []crypto.PublicKey
	// own are in the file beside the signing key, if the server makes that itself: its public
	// half, and those of former ones.
	own []crypto.PublicKey
}

func (k *tokenKeys) readPublic(contents [][]byte) error {
	var public []crypto.PublicKey
	for _, content := range contents {
		keys, err := serviceaccount.ParsePublicKeys(content)
		if err != nil {
			return err
		}
		public = append(public, keys...)
	}
	return k.replace(k.signing, k.own, public)
}

func (k *tokenKeys) readSigning(contents [][]byte) error {
	signing, err := serviceaccount.ParseSigningKey(contents[0])
	if err != nil {
		return err
	}
	return k.replace(signing, k.own, k.public)
}

// readOwn reads the key that the server has made, and the public ones beside it.
func (k *tokenKeys) readOwn(contents [][]byte) error {
	signing, err := serviceaccount.ParseSigningKey(contents[0])
	if err != nil {
		return err
	}
	own, err := serviceaccount.ParsePublicKeys(contents[1])
	if err != nil {
		return err
	}
	return k.replace(signing, own, k.public)
}

func (k *tokenKeys) replace(signing crypto.Signer, own, public []crypto.PublicKey) error {
	if signing != nil {
		if err := k.ring.Replace(signing, slices.Concat(own, public)); err != nil {
			return err
		}
	}
	k.signing, k.own, k.public = signing, own, public
	return nil
}

// reloadMetrics are the metrics that Kubernetes has of the files that it reads again, by
// its names; the other files have those of filewatch alone.
func (s *Server) reloadMetrics(store storage.Store) []prometheus.Collector {
	var all []prometheus.Collector
	if encryptionOf(store) != nil {
		all = append(all, filewatch.ConfigCollectors("encryption", func() filewatch.Stats { return s.identity.files.Stats(encryptionFlag) })...)
		all = append(all, newEncryptionCollector(encryptionOf(store)))
	}
	for kind, flag := range map[string]string{"authentication": authenticationConfigFlag, "authorization": authorizationConfigFlag} {
		if s.identity.files.Stats(flag).Hash != "" {
			all = append(all, filewatch.ConfigCollectors(kind, func() filewatch.Stats { return s.identity.files.Stats(flag) })...)
		}
	}
	return all
}

// servingHosts are the names and addresses by which clients may reach the server.
func (c *Config) servingHosts() []string {
	hosts := []string{
		"localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		c.ServiceCIDR.Masked().Addr().Next().String(),
	}
	if ip := net.ParseIP(c.BindAddress); !ip.IsUnspecified() {
		hosts = append(hosts, ip.String())
	} else if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	hosts = append(hosts, c.Hosts...)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func (c *Config) kubeconfigPath() string { return filepath.Join(c.DataDir, "admin.kubeconfig") }

// urlOf is the URL by which the same machine reaches the server.
func urlOf(address *net.TCPAddr) string {
	local := *address
	if local.IP.IsUnspecified() {
		local.IP = net.IPv4(127, 0, 0, 1)
	}
	return "https://" + local.String()
}
