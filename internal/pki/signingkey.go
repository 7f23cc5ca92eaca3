package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/levelwire/levelwire/internal/atomicfile"
)

// SigningKey is where a key is kept that signs something else than certificates. It can be
// replaced while programs use it.
type SigningKey struct {
	// Private is the file of the ECDSA key that signs. Public has its public half, and those of
	// former keys, which verify what these have signed.
	Private, Public string
}

// SigningKeyIn returns the key of a name below dir, which need not exist.
func SigningKeyIn(dir, name string) SigningKey {
	return SigningKey{Private: filepath.Join(dir, name+".key"), Public: filepath.Join(dir, name+".pub")}
}

// Ensure makes the key if it is absent: then what former ones have signed is not verified any more.
func (k SigningKey) Ensure() error {
	key, err := loadKey(k.Private)
	switch {
	case err == nil:
		if _, err := os.Stat(k.Public); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return k.writePublic(key)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.Private), 0o700); err != nil {
		return err
	}
	_, err = k.replace(nil)
	return err
}

// Rotate makes another key, which signs from now on. It returns how many former ones still verify.
func (k SigningKey) Rotate() (former int, err error) {
	key, err := loadKey(k.Private)
	if err != nil {
		return 0, err
	}
	known, err := k.readPublic()
	if err != nil {
		return 0, err
	}
	return k.replace(append([]publicKey{&key.PublicKey}, known...))
}

// DropFormer has only the key verify that signs. It returns how many others are dropped.
func (k SigningKey) DropFormer() (dropped int, err error) {
	key, err := loadKey(k.Private)
	if err != nil {
		return 0, err
	}
	known, err := k.readPublic()
	if err != nil {
		return 0, err
	}
	return len(without(known, &key.PublicKey)), k.writePublic(key)
}

// replace writes a new key. First the public keys are written: whoever finds what the new key has
// signed finds it there, too.
func (k SigningKey) replace(former []publicKey) (kept int, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return 0, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return 0, err
	}
	former = distinct(former)
	if err := k.writePublic(key, former...); err != nil {
		return 0, err
	}
	return len(former), atomicfile.Write(k.Private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func (k SigningKey) writePublic(key *ecdsa.PrivateKey, former ...publicKey) error {
	var file bytes.Buffer
	for _, public := range append([]publicKey{&key.PublicKey}, former...) {
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			return err
		}
		if err := pem.Encode(&file, &pem.Block{Type: "PUBLIC KEY", Bytes: der}); err != nil {
			return err
		}
	}
	return atomicfile.Write(k.Public, file.Bytes(), 0o644)
}

// readPublic returns the public keys; none if the file is absent, as versions before did not make it.
func (k SigningKey) readPublic() (keys []publicKey, err error) {
	data, err := os.ReadFile(k.Public)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Public, err)
		}
		key, ok := parsed.(publicKey)
		if !ok {
			return nil, fmt.Errorf("%s: a %T cannot be compared with other keys", k.Public, parsed)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// publicKey is what all public keys of the standard library are.
type publicKey interface{ Equal(x crypto.PublicKey) bool }

func distinct(keys []publicKey) (list []publicKey) {
	for _, key := range keys {
		if len(without(list, key)) == len(list) {
			list = append(list, key)
		}
	}
	return list
}

// without returns the keys that are others than one.
func without(keys []publicKey, one publicKey) (others []publicKey) {
	for _, key := range keys {
		if !key.Equal(one) {
			others = append(others, key)
		}
	}
	return others
}
