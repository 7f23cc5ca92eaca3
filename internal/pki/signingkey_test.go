package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestSigningKey: rotations keep the former keys, newest first, until they are dropped.
func TestSigningKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	k := SigningKeyIn(dir, "tokens")
	if _, err := k.Rotate(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that does not exist is rotated: %v", err)
	}
	if err := k.Ensure(); err != nil {
		t.Fatal(err)
	}
	first := read(t, k.Public)
	if info, err := os.Stat(k.Private); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	expect := func(want ...[]byte) {
		t.Helper()
		if got := read(t, k.Public); !bytes.Equal(got, bytes.Join(want, nil)) {
			t.Errorf("%s", got)
		}
		key, err := loadKey(k.Private)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if block, _ := pem.Decode(want[0]); err != nil || !bytes.Equal(block.Bytes, der) {
			t.Errorf("the first public key is not that of the private one: %v", err)
		}
	}
	if err := k.Ensure(); err != nil {
		t.Fatal(err)
	}
	expect(first)
	rotate := func(former int) (public []byte) {
		t.Helper()
		if kept, err := k.Rotate(); err != nil || kept != former {
			t.Fatalf("%d former keys, %v, want %d", kept, err, former)
		}
		file := read(t, k.Public)
		_, rest := pem.Decode(file)
		return file[:len(file)-len(rest)]
	}
	second := rotate(1)
	expect(second, first)
	third := rotate(2)
	expect(third, second, first)
	if dropped, err := k.DropFormer(); err != nil || dropped != 2 {
		t.Errorf("%d dropped, %v", dropped, err)
	}
	expect(third)

	remove(t, k.Public) // as versions before left it
	if err := k.Ensure(); err != nil {
		t.Fatal(err)
	}
	expect(third)
	remove(t, k.Public)
	fourth := rotate(1)
	expect(fourth, third)

	remove(t, k.Private) // none of the former keys is trusted any more
	if err := k.Ensure(); err != nil {
		t.Fatal(err)
	}
	expect(read(t, k.Public))
	if bytes.Contains(read(t, k.Public), fourth) {
		t.Error("the keys of one that was removed are kept")
	}
}

// TestSigningKeyBesideOthers: keys of other kinds that somebody has added stay, and what is no key
// changes nothing.
func TestSigningKeyBesideOthers(t *testing.T) {
	k := SigningKeyIn(t.TempDir(), "tokens")
	if err := k.Ensure(); err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	added := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	write(t, k.Public, append(read(t, k.Public), added...))
	if kept, err := k.Rotate(); err != nil || kept != 2 || !bytes.HasSuffix(read(t, k.Public), added) {
		t.Errorf("%d kept, %v", kept, err)
	}
	broken := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("no key")})
	write(t, k.Public, broken)
	before := read(t, k.Private)
	if _, err := k.Rotate(); err == nil {
		t.Error("a file with something else than keys is overwritten")
	}
	if !bytes.Equal(read(t, k.Public), broken) || !bytes.Equal(read(t, k.Private), before) {
		t.Error("a rotation that failed has changed a file")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
