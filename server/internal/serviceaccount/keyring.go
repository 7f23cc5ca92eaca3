package serviceaccount

import (
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/levelwire/levelwire/server/internal/auth"
)

const (
	// maxRemembered bounds the cache of verified tokens. A full cache is emptied, which
	// costs one verification per token.
	maxRemembered = 4096
	// maxRememberedBytes is how long a token may be that is cached, with its claims. Ordinary
	// ones have one or two kB; their audiences can be of any length.
	maxRememberedBytes = 8 << 10
)

// KeyRing has the key that signs the tokens of service accounts, and the keys that
// verify them. They can be replaced while it is used. It is safe for concurrent use.
type KeyRing struct {
	current atomic.Pointer[keys]
}

// NewKeyRing returns a KeyRing with these keys; see Replace.
func NewKeyRing(signing crypto.Signer, public []crypto.PublicKey) (*KeyRing, error) {
	r := &KeyRing{}
	return r, r.Replace(signing, public)
}

// Replace makes these the only keys: signing signs new tokens, and its public half and
// public verify them. Tokens of keys that are not among them are refused from now on. An
// error leaves the keys as they were.
func (r *KeyRing) Replace(signing crypto.Signer, public []crypto.PublicKey) error {
	signer, err := newSigner(signing)
	if err != nil {
		return err
	}
	set, err := newKeySet(append([]crypto.PublicKey{signing.Public()}, public...))
	if err != nil {
		return err
	}
	r.current.Store(&keys{signer: signer, public: set})
	return nil
}

// keys are the keys of a KeyRing at a time. They verify tokens, and cache those that are
// valid: to verify a signature takes as long as to answer a small request, and a client
// sends the same token thousands of times.
type keys struct {
	signer *signer
	public *keySet

	mu         sync.RWMutex
	remembered map[[sha256.Size]byte]*claims
}

// verify returns the claims of a token that one of the keys has signed. The result
// is shared. It does not check the token's times. The error is
// auth.ErrUnknownToken for a token that is not of the issuers.
func (k *keys) verify(token string, issuers []string) (*claims, error) {
	hash := sha256.Sum256([]byte(token))
	k.mu.RLock()
	known := k.remembered[hash]
	k.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	c, err := k.verifySignature(token, issuers)
	if err != nil || len(token) > maxRememberedBytes {
		return c, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.remembered == nil || len(k.remembered) >= maxRemembered {
		k.remembered = make(map[[sha256.Size]byte]*claims)
	}
	k.remembered[hash] = c
	return c, nil
}

func (k *keys) verifySignature(token string, issuers []string) (*claims, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, auth.ErrUnknownToken
	}
	unverified := &claims{}
	if err := parsed.UnsafeClaimsWithoutVerification(unverified); err != nil || !unverified.isOf(issuers) {
		return nil, auth.ErrUnknownToken
	}
	failed := errors.New("there are no keys to verify it with")
	for _, key := range k.public.candidates(parsed.Headers[0].KeyID) {
		c := &claims{}
		if failed = parsed.Claims(key.Key, c); failed == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("the token's signature: %w", failed)
}

// isOf reports whether a token claims to be of one of the issuers.
func (c *claims) isOf(issuers []string) bool {
	if c.Kubernetes == nil {
		return c.Issuer == legacyIssuer
	}
	return slices.Contains(issuers, c.Issuer)
}
