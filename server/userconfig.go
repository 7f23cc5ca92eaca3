package server

import (
	"math"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// UserConfig returns client-go's configuration of a user with a name and groups, for a
// program that runs the server in its own process: its components, or a test. It has a
// client certificate that the server's own authority has signed for this call. The
// certificate is saved nowhere, and is valid for as long as the authority is.
//
// What the user may do is what the authorizer decides. With RBAC, a name such as
// system:kube-scheduler, or system:serviceaccount:NAMESPACE:NAME with the group
// system:serviceaccounts, has the roles that are bound to it.
func (s *Server) UserConfig(name string, groups ...string) (*rest.Config, error) {
	pair, err := s.identity.certificates.authority.IssueClient(name, groups, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            s.URL(),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.identity.rootCA, CertData: pair.CertPEM, KeyData: pair.KeyPEM},
	}, nil
}

// UserTokenConfig is UserConfig with a bearer token in place of the certificate. Users
// without certificates can share connections, see client.Options.ConnectionsOf. The token
// is kept in this process only, and is valid until the process ends.
func (s *Server) UserTokenConfig(name string, groups ...string) *rest.Config {
	return &rest.Config{
		Host:            s.URL(),
		BearerToken:     s.identity.issued.Issue(auth.User{Name: name, Groups: groups}),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.identity.rootCA},
	}
}
