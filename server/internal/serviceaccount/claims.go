package serviceaccount

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// claims is what a token says. A token is either bound, with everything in
// Kubernetes, or of the older kind, which lives as long as the secret that it
// is kept in.
type claims struct {
	jwt.Claims
	Audience   audiences `json:"aud,omitempty"`
	Kubernetes *bound    `json:"kubernetes.io,omitempty"`
	legacy
}

// audiences is written as a list even if it is one, as Kubernetes does, and read
// in both forms.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(data []byte) error {
	return (*jwt.Audience)(a).UnmarshalJSON(data)
}

// bound is whom a token stands for, and the object that it lives as long as.
type bound struct {
	Namespace      string     `json:"namespace"`
	ServiceAccount reference  `json:"serviceaccount"`
	Pod            *reference `json:"pod,omitempty"`
	Secret         *reference `json:"secret,omitempty"`
	Node           *reference `json:"node,omitempty"`
}

type reference struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// legacy are the claims of a token in a secret.
type legacy struct {
	LegacyNamespace string    `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	LegacySecret    string    `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	LegacyAccount   string    `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	LegacyUID       types.UID `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
}

// legacyIssuer is in every token of the older kind.
const legacyIssuer = "kubernetes/serviceaccount"

// account is whom the token stands for.
func (c *claims) account() (namespace string, ref reference) {
	if c.Kubernetes != nil {
		return c.Kubernetes.Namespace, c.Kubernetes.ServiceAccount
	}
	return c.LegacyNamespace, reference{c.LegacyAccount, c.LegacyUID}
}

// leeway is by how much the clocks of two servers may differ.
const leeway = jwt.DefaultLeeway

// check refuses a token that is not complete, or not of the time.
func (c *claims) check(now time.Time) error {
	namespace, ref := c.account()
	switch {
	case namespace == "" || ref.Name == "" || ref.UID == "":
		return fmt.Errorf("the token names no service account")
	case c.Subject != auth.ServiceAccountName(namespace, ref.Name):
		return fmt.Errorf("the token's subject is not its service account")
	case c.Kubernetes == nil:
		return nil // the older kind has no times
	case c.Expiry == nil:
		return fmt.Errorf("the token has no end")
	case now.After(c.Expiry.Time().Add(leeway)):
		return fmt.Errorf("service account token has expired")
	case c.NotBefore != nil && now.Add(leeway).Before(c.NotBefore.Time()):
		return fmt.Errorf("service account token is not valid yet")
	}
	return nil
}

// audiencesAmong are those that the token is for. A token of the older kind is
// for the server alone, whose audiences own are.
func (c *claims) audiencesAmong(asked, own []string) []string {
	var has []string = c.Audience
	if c.Kubernetes == nil {
		has = own
	}
	var both []string
	for _, audience := range asked {
		if slices.Contains(has, audience) {
			both = append(both, audience)
		}
	}
	return both
}
