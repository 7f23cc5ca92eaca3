package serviceaccount

import (
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// claims are the claims of a token. A token is either bound, with its claims in
// Kubernetes, or a legacy token, which is valid as long as the secret that holds
// it exists.
type claims struct {
	jwt.Claims
	Audience   audiences `json:"aud,omitempty"`
	Kubernetes *bound    `json:"kubernetes.io,omitempty"`
	legacy
}

// audiences is encoded as a list even if it is only one, as Kubernetes does, and
// decoded from both forms.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(data []byte) error {
	return (*jwt.Audience)(a).UnmarshalJSON(data)
}

// bound is the account of a token, and the objects that it is bound to.
type bound struct {
	Namespace      string     `json:"namespace"`
	ServiceAccount reference  `json:"serviceaccount"`
	Pod            *reference `json:"pod,omitempty"`
	Secret         *reference `json:"secret,omitempty"`
	Node           *reference `json:"node,omitempty"`
	// WarnAfter is when the holder of a token that lives on has to have replaced it.
	WarnAfter *jwt.NumericDate `json:"warnafter,omitempty"`
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

// legacyIssuer is the issuer of every legacy token.
const legacyIssuer = "kubernetes/serviceaccount"

// account returns the account that the token identifies.
func (c *claims) account() (namespace string, ref reference) {
	if c.Kubernetes != nil {
		return c.Kubernetes.Namespace, c.Kubernetes.ServiceAccount
	}
	return c.LegacyNamespace, reference{c.LegacyAccount, c.LegacyUID}
}

// leeway is how much the clocks of two servers may differ.
const leeway = jwt.DefaultLeeway

// check refuses a token that is incomplete, expired or not valid yet.
func (c *claims) check(now time.Time) error {
	namespace, ref := c.account()
	switch {
	case namespace == "" || ref.Name == "" || ref.UID == "":
		return fmt.Errorf("the token names no service account")
	case c.Subject != auth.ServiceAccountName(namespace, ref.Name):
		return fmt.Errorf("the token's subject is not its service account")
	case c.Kubernetes == nil:
		return nil // legacy tokens have no times
	case c.Expiry == nil:
		return fmt.Errorf("the token has no end")
	case now.After(c.Expiry.Time().Add(leeway)):
		return fmt.Errorf("service account token has expired")
	case c.NotBefore != nil && now.Add(leeway).Before(c.NotBefore.Time()):
		return fmt.Errorf("service account token is not valid yet")
	}
	return nil
}

// intersectAudiences returns the asked audiences that the token is for. A legacy
// token is for the server alone, whose audiences are own.
func (c *claims) intersectAudiences(asked, own []string) []string {
	has := sets.New(c.Audience...) // there may be as many as a body can hold
	if c.Kubernetes == nil {
		has = sets.New(own...)
	}
	var both []string
	for _, audience := range asked {
		if has.Has(audience) {
			both = append(both, audience)
		}
	}
	return both
}
