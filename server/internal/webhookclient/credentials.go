package webhookclient

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Credentials are the users as which webhooks are called: those of a kubeconfig file, whose
// names say for which hosts they are
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers).
// A nil *Credentials has none. They are immutable and safe for concurrent use.
type Credentials struct{ config *clientcmdapi.Config }

// LoadCredentials reads a kubeconfig file. The error says which user of it is of no use.
// Files that the users name are read again when they are needed: certificates for each
// connection, tokens within a minute.
func LoadCredentials(file string) (*Credentials, error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		if err := check(config.AuthInfos[name]); err != nil {
			return nil, fmt.Errorf("%s: user %q: %w", file, name, err)
		}
	}
	if current := config.Contexts[config.CurrentContext]; config.CurrentContext != "" && current == nil {
		return nil, fmt.Errorf("%s: the current-context %q does not exist", file, config.CurrentContext)
	}
	return &Credentials{config}, nil
}

func check(u *clientcmdapi.AuthInfo) error {
	if u.Exec != nil || u.AuthProvider != nil {
		return errors.New("exec and auth-provider are not supported: name a client certificate, a token or a tokenFile")
	}
	if hasCertificate(u) {
		if _, err := certificateOf(u); err != nil {
			return err
		}
	}
	_, err := rest.HTTPWrappersForConfig(restConfig(u), http.DefaultTransport)
	return err
}

func hasCertificate(u *clientcmdapi.AuthInfo) bool {
	return u.ClientCertificate != "" || len(u.ClientCertificateData) > 0
}

// certificateOf reads a client certificate. Data take precedence over files.
func certificateOf(u *clientcmdapi.AuthInfo) (*tls.Certificate, error) {
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CertFile: u.ClientCertificate, CertData: u.ClientCertificateData, KeyFile: u.ClientKey, KeyData: u.ClientKeyData,
	}}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("its client certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return nil, fmt.Errorf("its client certificate: %w", err)
	}
	return &pair, nil
}

// restConfig returns what a user adds to the headers of requests.
func restConfig(u *clientcmdapi.AuthInfo) *rest.Config {
	return &rest.Config{
		BearerToken: u.Token, BearerTokenFile: u.TokenFile, Username: u.Username, Password: u.Password,
		Impersonate: rest.ImpersonationConfig{UserName: u.Impersonate, UID: u.ImpersonateUID, Groups: u.ImpersonateGroups, Extra: u.ImpersonateUserExtra},
	}
}

// userFor returns the user for a webhook at host:port, or nil. A user is named by the host with
// its port, by a suffix of that after "*.", by the same without the port if it is 443, or
// by "*"; the user of the current context is for all others.
func (c *Credentials) userFor(hostPort string) *clientcmdapi.AuthInfo {
	if c == nil {
		return nil
	}
	names := namesFor(hostPort)
	if host, port, err := net.SplitHostPort(hostPort); err == nil && port == "443" {
		names = append(names, namesFor(host)...)
	}
	for _, name := range append(names, "*") {
		if u := c.config.AuthInfos[name]; u != nil {
			return u
		}
	}
	if current := c.config.Contexts[c.config.CurrentContext]; current != nil {
		return c.config.AuthInfos[current.AuthInfo]
	}
	return nil
}

func namesFor(host string) []string {
	names := []string{host}
	for {
		_, parent, ok := strings.Cut(host, ".")
		if !ok {
			return names
		}
		names = append(names, "*."+parent)
		host = parent
	}
}

// authenticate makes a transport show the certificate of a user, and returns what sets the
// user's headers.
func authenticate(transport *http.Transport, u *clientcmdapi.AuthInfo) (http.RoundTripper, error) {
	if u == nil {
		return transport, nil
	}
	if hasCertificate(u) {
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificateOf(u)
		}
	}
	return rest.HTTPWrappersForConfig(restConfig(u), transport)
}
