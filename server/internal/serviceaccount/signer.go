package serviceaccount

import (
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/levelwire/levelwire/server/internal/auth"
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

// maxRemembered bounds the cache of verified tokens. A full cache is emptied, which
// costs one verification per token.
const maxRemembered = 4096

// verifier verifies tokens of its issuers, and caches those that are valid: to
// verify a signature takes as long as to answer a small request, and a client sends
// the same token thousands of times.
type verifier struct {
	issuers []string
	keys    *keySet

	mu         sync.RWMutex
	remembered map[[sha256.Size]byte]*claims
}

// verify returns the claims of a token that one of the keys has signed. The result
// is shared. It does not check the token's times. The error is
// auth.ErrUnknownToken for a token that is not of the issuers.
func (v *verifier) verify(token string) (*claims, error) {
	hash := sha256.Sum256([]byte(token))
	v.mu.RLock()
	known := v.remembered[hash]
	v.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	c, err := v.verifySignature(token)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.remembered == nil || len(v.remembered) >= maxRemembered {
		v.remembered = make(map[[sha256.Size]byte]*claims)
	}
	v.remembered[hash] = c
	return c, nil
}

func (v *verifier) verifySignature(token string) (*claims, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, auth.ErrUnknownToken
	}
	unverified := &claims{}
	if err := parsed.UnsafeClaimsWithoutVerification(unverified); err != nil || !v.isIssuer(unverified) {
		return nil, auth.ErrUnknownToken
	}
	failed := errors.New("there are no keys to verify it with")
	for _, key := range v.keys.candidates(parsed.Headers[0].KeyID) {
		c := &claims{}
		if failed = parsed.Claims(key.Key, c); failed == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("the token's signature: %w", failed)
}

// isIssuer reports whether a token claims to be of one of the issuers.
func (v *verifier) isIssuer(c *claims) bool {
	if c.Kubernetes == nil {
		return c.Issuer == legacyIssuer
	}
	return slices.Contains(v.issuers, c.Issuer)
}
