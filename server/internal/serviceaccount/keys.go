package serviceaccount

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// algorithms are the accepted signature algorithms of tokens; "none" and the
// symmetric ones are not among them.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// ParseSigningKey returns the private key, RSA or ECDSA, of a PEM file.
func ParseSigningKey(data []byte) (crypto.Signer, error) {
	keys, err := parseKeys(data)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
	}
	return nil, errors.New("no private key in the file")
}

// ParsePublicKeys returns the keys that verify tokens, of a PEM file: public keys,
// certificates, or private keys, of which it takes the public half.
func ParsePublicKeys(data []byte) ([]crypto.PublicKey, error) {
	keys, err := parseKeys(data)
	if err != nil {
		return nil, err
	}
	public := make([]crypto.PublicKey, len(keys))
	for i, key := range keys {
		if signer, ok := key.(crypto.Signer); ok {
			key = signer.Public()
		}
		public[i] = key
	}
	return public, nil
}

// parseKeys returns every key of a PEM file, private or public.
func parseKeys(data []byte) ([]any, error) {
	var keys []any
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		key, err := parseKey(block)
		if err != nil {
			return nil, err
		}
		if key == nil {
			continue // "EC PARAMETERS" and the like
		}
		if _, err := algorithmOf(key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("no PEM key in the file")
	}
	return keys, nil
}

func parseKey(block *pem.Block) (any, error) {
	switch block.Type {
	case "PRIVATE KEY":
		return x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	}
	return nil, nil
}

// algorithmOf returns the signature algorithm of a key.
func algorithmOf(key any) (jose.SignatureAlgorithm, error) {
	if signer, ok := key.(crypto.Signer); ok {
		key = signer.Public()
	}
	switch k := key.(type) {
	case *rsa.PublicKey:
		return jose.RS256, nil
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return jose.ES256, nil
		case 384:
			return jose.ES384, nil
		case 521:
			return jose.ES512, nil
		}
	}
	return "", fmt.Errorf("a key of the type %T cannot sign tokens: it must be RSA or ECDSA on P-256, P-384 or P-521", key)
}

// keyID names a key by the hash of its DER form, as Kubernetes does.
func keyID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(hash[:]), nil
}

// keySet has the public keys that verify tokens, by their ids.
type keySet struct {
	keys []jose.JSONWebKey
}

func newKeySet(public []crypto.PublicKey) (*keySet, error) {
	s := &keySet{}
	for _, key := range public {
		algorithm, err := algorithmOf(key)
		if err != nil {
			return nil, err
		}
		id, err := keyID(key)
		if err != nil {
			return nil, err
		}
		if len(s.named(id)) == 0 {
			s.keys = append(s.keys, jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(algorithm), Use: "sig"})
		}
	}
	return s, nil
}

func (s *keySet) named(id string) []jose.JSONWebKey {
	for i := range s.keys {
		if s.keys[i].KeyID == id {
			return s.keys[i : i+1]
		}
	}
	return nil
}

// candidates returns the keys that may have signed a token: the one that it names,
// or all if it does not name a known one.
func (s *keySet) candidates(id string) []jose.JSONWebKey {
	if named := s.named(id); named != nil {
		return named
	}
	return s.keys
}
