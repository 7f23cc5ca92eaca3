package client

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// explainUnauthorized adds to a 401 which server has refused which credentials: the Status
// of a server says neither, and a program may have several of both.
func (c *Client) explainUnauthorized(err error) error {
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	return fmt.Errorf("%w: %s does not accept %s", err, c.base.Redacted(), c.describeCredentials())
}

// describeCredentials names the credentials, without what is secret.
func (c *Client) describeCredentials() string {
	switch cfg := c.config; {
	case cfg.ExecProvider != nil:
		return "what the exec plugin " + cfg.ExecProvider.Command + " has given"
	case cfg.AuthProvider != nil:
		return "what the auth provider " + cfg.AuthProvider.Name + " has given"
	case cfg.BearerTokenFile != "":
		return "the token in " + cfg.BearerTokenFile
	case cfg.BearerToken != "":
		return "the token of the configuration"
	case cfg.Username != "":
		return fmt.Sprintf("the password of user %q", cfg.Username)
	case cfg.CertFile != "":
		return "the client certificate in " + cfg.CertFile
	case len(cfg.CertData) > 0:
		return "the client certificate of the configuration"
	default:
		return "requests without credentials, and the configuration has none"
	}
}
