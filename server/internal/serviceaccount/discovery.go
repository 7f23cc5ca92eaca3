package serviceaccount

import (
	"encoding/json"

	"github.com/go-jose/go-jose/v4"
)

// The paths of the documents by which other systems verify tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
)

// Keys is the set of public keys as a JSON Web Key Set (RFC 7517).
func (t *Tokens) Keys() ([]byte, error) {
	return json.Marshal(jose.JSONWebKeySet{Keys: t.opts.Keys.current.Load().public.keys})
}

// Configuration is the issuer's metadata (OpenID Connect Discovery 1.0, section
// 3); keysURL is where Keys is served.
func (t *Tokens) Configuration(keysURL string) ([]byte, error) {
	type configuration struct {
		Issuer     string   `json:"issuer"`
		KeysURL    string   `json:"jwks_uri"`
		Responses  []string `json:"response_types_supported"`
		Subjects   []string `json:"subject_types_supported"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	c := configuration{Issuer: t.opts.Issuers[0], KeysURL: keysURL, Responses: []string{"id_token"}, Subjects: []string{"public"}}
	for _, key := range t.opts.Keys.current.Load().public.keys {
		c.Algorithms = appendNew(c.Algorithms, key.Algorithm)
	}
	return json.Marshal(c)
}

func appendNew(list []string, s string) []string {
	for _, known := range list {
		if known == s {
			return list
		}
	}
	return append(list, s)
}
