package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/pki"
)

// renewing is a server's certificates, which are renewed while the test lasts, and
// its clock.
type renewing struct {
	*certificates
	t      *testing.T
	offset atomic.Int64
	logged bytes.Buffer
}

func startRenewing(t *testing.T, config Config) *renewing {
	t.Helper()
	r := &renewing{t: t}
	config.DataDir = t.TempDir()
	config.Logger = slog.New(slog.NewTextHandler(&r.logged, nil))
	if err := config.ensureDefaults(); err != nil {
		t.Fatal(err)
	}
	id, err := config.prepareIdentity(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443}, r.now)
	if err != nil {
		t.Fatal(err)
	}
	r.certificates = id.certificates
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run(ctx, config.Logger)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *renewing) now() time.Time { return time.Now().Add(time.Duration(r.offset.Load())) }

// jump moves the clock and waits for the next check.
func (r *renewing) jump(by time.Duration) {
	r.offset.Add(int64(by))
	time.Sleep(renewInterval)
	synctest.Wait()
}

// current returns the certificate that clients are served with now.
func (r *renewing) current() *x509.Certificate {
	r.t.Helper()
	c, err := r.get(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return c.Leaf
}

// admin returns the certificate in the administrator's kubeconfig.
func (r *renewing) admin() *x509.Certificate {
	r.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		r.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		r.t.Fatal(err)
	}
	return pair.Leaf
}

// TestCertificatesAreRenewedWhileTheServerRuns, the serving certificate and the
// administrator's: before they expire, and when the clock goes back.
func TestCertificatesAreRenewedWhileTheServerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRenewing(t, Config{})
		serving, admin := r.current(), r.admin()
		for _, step := range []struct {
			jump  time.Duration
			renew bool
		}{
			{-48 * time.Hour, true}, // the machine's clock was ahead at the first start
			{300 * 24 * time.Hour, false},
			{40 * 24 * time.Hour, true},
			{time.Hour, false},
			{-48 * time.Hour, true},
			{400 * 24 * time.Hour, true}, // the machine slept: all have expired
		} {
			r.jump(step.jump)
			nowServing, nowAdmin := r.current(), r.admin()
			if renewed := !nowServing.Equal(serving); renewed != step.renew || renewed == nowAdmin.Equal(admin) {
				t.Errorf("after a jump of %s: the serving certificate is renewed %t, the administrator's %t, want %t",
					step.jump, renewed, !nowAdmin.Equal(admin), step.renew)
			}
			serving, admin = nowServing, nowAdmin
			roots := x509.NewCertPool()
			roots.AddCert(r.authority.Certificate())
			if _, err := serving.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: r.now(), DNSName: "localhost"}); err != nil {
				t.Error(err)
			}
			if _, err := admin.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: r.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestConfiguredCertificatesAreReadAgain when the files have changed. Files that
// cannot be used leave the server with what it had.
func TestConfiguredCertificatesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		authority, err := pki.LoadOrCreateAuthority(dir, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		write := func() *x509.Certificate {
			pair, err := authority.Serving(dir, []string{"localhost", time.Now().Format("at-150405.test")})
			if err != nil {
				t.Fatal(err)
			}
			return pair.Leaf
		}
		first := write()
		r := startRenewing(t, Config{TLSCertFile: filepath.Join(dir, "server.crt"), TLSKeyFile: filepath.Join(dir, "server.key")})
		if !r.current().Equal(first) {
			t.Fatal("the configured certificate is not served")
		}
		r.jump(0)
		second := write()
		r.jump(0)
		if !r.current().Equal(second) {
			t.Error("the files have changed, and the server serves what they were")
		}
		if err := os.WriteFile(filepath.Join(dir, "server.crt"), []byte("half a certi"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.jump(0)
		if !r.current().Equal(second) || !bytes.Contains(r.logged.Bytes(), []byte("could not be renewed")) {
			t.Errorf("a broken file: logged %s", &r.logged)
		}
		if err := os.Remove(filepath.Join(dir, "server.crt")); err != nil {
			t.Fatal(err)
		}
		third := write()
		r.jump(0)
		if !r.current().Equal(third) {
			t.Error("the file was repaired, and is not served")
		}
	})
}
