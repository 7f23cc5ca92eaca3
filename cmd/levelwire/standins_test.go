package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server"
)

// assets fills a folder as the command does.
func assets(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "assets")
	r := invoke(t.Context(), "envtest-assets", dir)
	if r.code != exitOK || !strings.Contains(r.stdout, "KUBEBUILDER_ASSETS="+dir) {
		t.Fatalf("%+v", r)
	}
	return dir
}

// environment is the folder of certificates that envtest hands over, and the
// certificate of its administrator.
type environment struct {
	dir      string
	serverCA []byte
	admin    *pki.Pair
	stranger *pki.Pair
	port     string
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	e := &environment{dir: t.TempDir(), port: strconv.Itoa(freePort(t))}
	servers, clients, signer := authorityIn(t), authorityIn(t), authorityIn(t)
	pair, err := servers.Serving(t.TempDir(), []string{"127.0.0.1", "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	e.serverCA = servers.CertificatePEM()
	e.write(t, "apiserver.crt", pair.CertPEM)
	e.write(t, "apiserver.key", pair.KeyPEM)
	e.write(t, "client-cert-auth-ca.crt", clients.CertificatePEM())
	key, err := signer.Serving(t.TempDir(), []string{"signer"})
	if err != nil {
		t.Fatal(err)
	}
	e.write(t, "sa-signer.crt", key.CertPEM)
	e.write(t, "sa-signer.key", key.KeyPEM)
	if e.admin, err = clients.Client(t.TempDir(), "a", "admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	if e.stranger, err = authorityIn(t).Client(t.TempDir(), "s", "stranger", "system:masters"); err != nil {
		t.Fatal(err)
	}
	return e
}

func authorityIn(t *testing.T) *pki.Authority {
	t.Helper()
	authority, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func (e *environment) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (e *environment) config(identity *pki.Pair) *rest.Config {
	return &rest.Config{Host: "https://127.0.0.1:" + e.port, TLSClientConfig: rest.TLSClientConfig{
		CAData: e.serverCA, CertData: identity.CertPEM, KeyData: identity.KeyPEM,
	}}
}

func (e *environment) client(t *testing.T, identity *pki.Pair) *client.Client {
	t.Helper()
	c, err := client.New(e.config(identity), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// TestEnvtestContract starts the stand-ins with envtest's exact command lines,
// and asks them what envtest asks.
func TestEnvtestContract(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	dir, e := assets(t), newEnvironment(t)
	for program, wants := range map[string]string{"etcd": `--unsafe-no-fsync`, "kube-apiserver": `--cert-dir`} {
		help := helpOf(ctx, t, filepath.Join(dir, program))
		if !strings.Contains(help, wants) || regexp.MustCompile(`(?m)^\s*--insecure-port`).MatchString(help) {
			t.Errorf("%s --help:\n%s", program, help)
		}
	}
	etcdPort, peerPort := strconv.Itoa(freePort(t)), strconv.Itoa(freePort(t))
	etcd := startProgram(t, t.TempDir(), "etcd", filepath.Join(dir, "etcd"),
		"--advertise-client-urls=http://127.0.0.1:"+etcdPort, "--data-dir="+t.TempDir(),
		"--listen-client-urls=http://127.0.0.1:"+etcdPort, "--listen-peer-urls=http://127.0.0.1:"+peerPort, "--unsafe-no-fsync=true")
	begin := time.Now()
	server := startProgram(t, t.TempDir(), "kube-apiserver", filepath.Join(dir, "kube-apiserver"),
		"--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--cert-dir="+e.dir,
		"--client-ca-file="+filepath.Join(e.dir, "client-cert-auth-ca.crt"), "--disable-admission-plugins=ServiceAccount",
		"--etcd-servers=http://127.0.0.1:"+etcdPort, "--secure-port="+e.port, "--service-account-issuer=https://127.0.0.1:"+e.port+"/",
		"--service-account-key-file="+filepath.Join(e.dir, "sa-signer.crt"),
		"--service-account-signing-key-file="+filepath.Join(e.dir, "sa-signer.key"), "--service-cluster-ip-range=10.0.0.0/24")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.serverCA)
	awaitHealth(ctx, t, "http://127.0.0.1:"+etcdPort+"/health", nil)
	awaitHealth(ctx, t, "https://127.0.0.1:"+e.port+"/healthz", &tls.Config{RootCAs: roots})
	c := e.client(t, e.admin)
	if _, err := client.For[*corev1.Namespace](c).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("the first request is answered %v after the start", time.Since(begin).Round(time.Millisecond))
	e.mustServe(ctx, t, c)
	c.CloseIdleConnections()
	for _, p := range []*process{server, etcd} {
		begin := time.Now()
		if err := p.terminate(ctx); err != nil {
			t.Error(err)
		}
		t.Logf("%s stops within %v", p.name, time.Since(begin).Round(time.Millisecond))
	}
	if left, err := filepath.Glob(filepath.Join(e.dir, "levelwire-*")); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// mustServe checks what tests of controllers rely on beyond being answered.
func (e *environment) mustServe(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	if _, err := client.For[*corev1.Namespace](c).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	made, err := client.For[*corev1.Pod](c).Namespace("n").Create(ctx, pod, metav1.CreateOptions{})
	if err != nil || made.Spec.ServiceAccountName != "" || len(made.Spec.Volumes) != 0 {
		t.Errorf("a pod without the plugin ServiceAccount: %+v, %v", made, err)
	}
	accounts, err := client.For[*corev1.ServiceAccount](c).Namespace("n").List(ctx, metav1.ListOptions{})
	if err != nil || len(accounts.Items) != 0 {
		t.Errorf("%d accounts made themselves, %v", len(accounts.Items), err)
	}
	service, err := client.For[*corev1.Service](c).Namespace("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil || !strings.HasPrefix(service.Spec.ClusterIP, "10.0.0.") {
		t.Errorf("service kubernetes: %v, %v", service, err)
	}
	if _, err := client.For[*corev1.Namespace](e.client(t, e.stranger)).List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a certificate of a strange authority: %v", err)
	}
	if issuer := e.issuer(ctx, t); issuer != "https://127.0.0.1:"+e.port+"/" {
		t.Errorf("the issuer of tokens is %q", issuer)
	}
}

// issuer reads the issuer of tokens off the OpenID discovery document.
func (e *environment) issuer(ctx context.Context, t *testing.T) string {
	t.Helper()
	c, err := rest.HTTPClientFor(e.config(e.admin))
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+e.port+"/.well-known/openid-configuration", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var document struct{ Issuer string }
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		t.Fatal(err)
	}
	return document.Issuer
}

func helpOf(ctx context.Context, t *testing.T, path string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, path, "--help")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s --help: %v\n%s", path, err, out)
	}
	return string(out)
}

// awaitHealth asks until the answer is 200, as envtest does.
func awaitHealth(ctx context.Context, t *testing.T, url string, config *tls.Config) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	converge(ctx, t, func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
		return nil
	})
}

// TestStandInsEndWithTheirTest: a test that is killed stops nothing, and its servers end all the same.
func TestStandInsEndWithTheirTest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	dir, e := assets(t), newEnvironment(t)
	etcdPort := strconv.Itoa(freePort(t))
	// A shell takes the place of the test. Its children have its standard output, which ends with the last of them.
	killed := startProgram(t, t.TempDir(), "sh", "/bin/sh", "-c", `"$1" "$2" & "$3" "$4" "$5" "$6" & wait`, "test",
		filepath.Join(dir, "etcd"), "--listen-client-urls=http://127.0.0.1:"+etcdPort,
		filepath.Join(dir, "kube-apiserver"), "--cert-dir="+e.dir, "--secure-port="+e.port, "--service-cluster-ip-range=10.0.0.0/24")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.serverCA)
	awaitHealth(ctx, t, "http://127.0.0.1:"+etcdPort+"/health", nil)
	awaitHealth(ctx, t, "https://127.0.0.1:"+e.port+"/healthz", &tls.Config{RootCAs: roots})
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-killed.ended:
	case <-ctx.Done():
		t.Error("the stand-ins go on without the program that started them")
	}
	if left, err := filepath.Glob(filepath.Join(e.dir, "levelwire-*")); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestUntilAlone: a stand-in goes on while its parent does, and for good if it is detached.
func TestUntilAlone(t *testing.T) {
	for _, detached := range []bool{false, true} {
		t.Run(fmt.Sprintf("detached=%v", detached), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var parent atomic.Int64
				parent.Store(7)
				ctx, cancel := untilAlone(t.Context(), func() int { return int(parent.Load()) }, detached)
				time.Sleep(time.Hour)
				if ctx.Err() != nil {
					t.Error("it has ended before its parent")
				}
				parent.Store(1)
				time.Sleep(2 * parentInterval)
				synctest.Wait()
				if ended := errors.Is(context.Cause(ctx), errAlone); ended == detached {
					t.Errorf("after its parent has ended: %v", context.Cause(ctx))
				}
				cancel()
			})
		})
	}
}

// TestAPIServerStandInFlags: what tests configure of trust is obeyed, and what does not exist here is
// ignored.
func TestAPIServerStandInFlags(t *testing.T) {
	for args, is := range map[string]func(server.Config) bool{
		"--audit-policy-file=p --audit-log-path=l":                        func(c server.Config) bool { return c.Audit.LogPath == "l" && c.Audit.LogDelivery.Mode == "blocking" },
		"--audit-policy-file=p --audit-log-path=l --audit-log-mode=batch": func(c server.Config) bool { return c.Audit.LogDelivery.Mode == "batch" },
		"--audit-policy-file=p":                                           func(c server.Config) bool { return c.Audit == server.AuditConfig{} },
		"--authorization-config=a":                                        func(c server.Config) bool { return c.AuthorizationConfigFile == "a" && len(c.AuthorizationModes) == 0 },
		"--authorization-mode=Webhook --authorization-webhook-config-file=w": func(c server.Config) bool {
			return c.AuthorizationWebhook.ConfigFile == "w" && c.AuthorizationWebhook.Version == "v1beta1" && c.AuthorizationModes[0] == "Webhook"
		},
		"--authorization-mode=ABAC,RBAC --authorization-policy-file=p":                             func(c server.Config) bool { return slices.Equal(c.AuthorizationModes, []string{"RBAC"}) },
		"--encryption-provider-config=e":                                                           func(c server.Config) bool { return c.EncryptionProviderConfig == "e" },
		"--admission-control-config-file=c":                                                        func(c server.Config) bool { return c.AdmissionConfigFile == "c" },
		"--service-account-max-token-expiration=2h":                                                func(c server.Config) bool { return c.ServiceAccountMaxTokenExpiration == 2*time.Hour },
		"--enable-admission-plugins=EventRateLimit,ImagePolicyWebhook":                             func(c server.Config) bool { return slices.Equal(c.EnableAdmissionPlugins, []string{"EventRateLimit"}) },
		"--disable-admission-plugins=Priority --enable-admission-plugins=Priority --etcd-prefix=x": func(c server.Config) bool { return len(c.DisableAdmissionPlugins) == 0 },
	} {
		var f apiServerFlags
		var got server.Config
		cmd := lenient(&cobra.Command{RunE: func(cmd *cobra.Command, _ []string) (err error) {
			got, err = f.complete(cmd)
			return err
		}})
		f.register(cmd)
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err != nil || !is(got) {
			t.Errorf("%s: %v, %+v", args, err, got)
		}
	}
}

// TestAssetsAreReplaced: the second time, too, and where a link cannot be made.
func TestAssetsAreReplaced(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := fillAssets(program, dir); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(standIns) {
		t.Errorf("%v, %v", entries, err)
	}
	copied := filepath.Join(dir, "copy")
	if err := copyProgram(program, copied); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("a copy is not executable: %v, %v", info, err)
	}
	if r := invoke(t.Context(), "envtest-assets"); r.code != exitUsage || !strings.Contains(r.stderr, "which folder") {
		t.Errorf("without a folder: %+v", r)
	}
}

// TestKubectlStandIn: it is not itself that it runs.
func TestKubectlStandIn(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := fillAssets(self, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := otherKubectl(self, []string{dir}); err == nil || !strings.Contains(err.Error(), "install kubectl") {
		t.Errorf("without another kubectl: %v", err)
	}
	script := filepath.Join(other, "kubectl")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"run with $*\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl"), "get", "pods", "--watch")
	cmd.Env = append(os.Environ(), asCommand+"=1", "PATH="+dir+string(filepath.ListSeparator)+other+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "run with get pods --watch\n" {
		t.Errorf("%q, %v", out, err)
	}
}
