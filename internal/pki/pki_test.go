package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func authority(t *testing.T, dir string, now time.Time) *Authority {
	t.Helper()
	a, err := LoadOrCreateAuthority(dir, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestServingCertificateIsVerifiedByTheAuthority(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a := authority(t, dir, now)
	pair, err := a.Serving(dir, []string{"localhost", "127.0.0.1", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.Certificate())
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestCertificatesAreKeptUntilTheyNoLongerFit(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	issue := func(now time.Time, hosts ...string) string {
		pair, err := authority(t, dir, now).Serving(dir, hosts)
		if err != nil {
			t.Fatal(err)
		}
		return string(pair.CertPEM)
	}
	first := issue(now, "localhost")
	if again := issue(now, "localhost"); again != first {
		t.Error("a good certificate was replaced")
	}
	withHost := issue(now, "localhost", "example.test")
	if withHost == first {
		t.Error("a certificate without a wanted host was kept")
	}
	if renewed := issue(now.Add(certificateLifetime-renewBefore), "localhost", "example.test"); renewed == withHost {
		t.Error("a certificate about to expire was kept")
	}
}

func TestClientCertificateCarriesUserAndGroups(t *testing.T) {
	dir := t.TempDir()
	a := authority(t, dir, time.Now())
	pair, err := a.Client(dir, "admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if pair.Leaf.Subject.CommonName != "admin" || pair.Leaf.Subject.Organization[0] != "system:masters" {
		t.Errorf("subject %v", pair.Leaf.Subject)
	}
}

func TestHalfAnAuthorityIsRefused(t *testing.T) {
	dir := t.TempDir()
	authority(t, dir, time.Now())
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	_, err := LoadOrCreateAuthority(dir, time.Now)
	if err == nil || !strings.Contains(err.Error(), "ca.key") {
		t.Fatalf("error %v; want one that names ca.key", err)
	}
}

// A crash at the first start may leave a key without its certificate.
func TestKeyWithoutCertificateIsCertifiedAgain(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	old := authority(t, dir, now)
	pair, err := old.Serving(dir, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	again := authority(t, dir, now)
	for _, a := range []*Authority{old, again} {
		roots := x509.NewCertPool()
		roots.AddCert(a.Certificate())
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", CurrentTime: now}); err != nil {
			t.Error(err)
		}
	}
	kept, err := again.Serving(dir, []string{"localhost"})
	if err != nil || string(kept.CertPEM) != string(pair.CertPEM) {
		t.Errorf("what the key had signed was replaced, %v", err)
	}
}

// A crash during a renewal may leave the new key beside the old certificate.
func TestHalvesOfTwoPairsAreReplaced(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	a := authority(t, dir, now)
	if _, err := a.Serving(dir, []string{"localhost"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Client(dir, "admin", "admin"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "admin.key"), filepath.Join(dir, "server.key")); err != nil {
		t.Fatal(err)
	}
	pair, err := a.Serving(dir, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := a.Serving(dir, []string{"localhost"}); err != nil || string(kept.CertPEM) != string(pair.CertPEM) {
		t.Errorf("the new pair was not kept, %v", err)
	}
}

func TestBrokenFilesAreNamed(t *testing.T) {
	for _, name := range []string{"ca.crt", "ca.key"} {
		dir := t.TempDir()
		authority(t, dir, time.Now())
		if err := os.WriteFile(filepath.Join(dir, name), []byte("junk"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOrCreateAuthority(dir, time.Now); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v; want one that names %s", err, name)
		}
	}
}

func TestKubeconfigIsPrivateAndLoads(t *testing.T) {
	dir := t.TempDir()
	a := authority(t, dir, time.Now())
	client, err := a.Client(dir, "admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "admin.kubeconfig")
	if err := WriteKubeconfig(path, "https://127.0.0.1:6443", "admin", a.CertificatePEM(), client); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || len(config.CAData) == 0 || len(config.KeyData) == 0 {
		t.Errorf("host %q, %d bytes of CA, %d of key", config.Host, len(config.CAData), len(config.KeyData))
	}
}

// TestAnUnchangedKubeconfigStays: a server starts on a disk that is full, which takes no new file, and one that has
// changed is replaced.
func TestAnUnchangedKubeconfigStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(server string) os.FileInfo {
		t.Helper()
		if err := WriteKubeconfig(path, server, "admin", []byte("authority"), &Pair{CertPEM: []byte("certificate"), KeyPEM: []byte("key")}); err != nil {
			t.Fatal(err)
		}
		file, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first := write("https://a")
	if !os.SameFile(first, write("https://a")) {
		t.Error("the same kubeconfig was written again")
	}
	if os.SameFile(first, write("https://b")) {
		t.Error("another kubeconfig was written over the first, and not put in its place")
	}
}
