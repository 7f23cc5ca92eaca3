package serviceaccount

import (
	"crypto"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// signer signs tokens.
type signer struct{ jose.Signer }

func newSigner(key crypto.Signer) (*signer, error) {
	algorithm, err := algorithmOf(key)
	if err != nil {
		return nil, err
	}
	id, err := keyID(key.Public())
	if err != nil {
		return nil, err
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		return nil, err
	}
	return &signer{s}, nil
}

func (s *signer) sign(c *claims) (string, error) {
	return jwt.Signed(s).Claims(c).Serialize()
}
