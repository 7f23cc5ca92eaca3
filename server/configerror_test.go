package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

// TestImpossibleConfigurations: each is refused before any file is written, with
// one line that names the flag.
func TestImpossibleConfigurations(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*server.Config)
		names  string
	}{
		"no data directory":     {func(c *server.Config) { c.DataDir = "" }, "--data-dir"},
		"address":               {func(c *server.Config) { c.BindAddress = "localhost" }, "--bind-address"},
		"port too high":         {func(c *server.Config) { c.SecurePort = 65536 }, "--secure-port"},
		"port too low":          {func(c *server.Config) { c.SecurePort = -2 }, "--secure-port"},
		"storage":               {func(c *server.Config) { c.Storage = "disk" }, "--storage"},
		"etcd without servers":  {func(c *server.Config) { c.Storage = server.Etcd }, "--etcd-servers"},
		"servers without etcd":  {func(c *server.Config) { c.EtcdServers = []string{"http://127.0.0.1:1"} }, "--storage=etcd"},
		"servers without a URL": {func(c *server.Config) { c.Storage, c.EtcdServers = server.Etcd, []string{"127.0.0.1:1"} }, "--etcd-servers"},
		"half a key pair":       {func(c *server.Config) { c.EtcdCertFile = "x" }, "--etcd-keyfile"},
		"no such file":          {func(c *server.Config) { c.EtcdCAFile = "no/such/file" }, "--etcd-cafile"},
		"retention":             {func(c *server.Config) { c.CompactionRetention = -1 }, "--compaction-retention"},
		"bytes of history":      {func(c *server.Config) { c.CompactionBytes = 1000 }, "--compaction-bytes"},
		"tombstones":            {func(c *server.Config) { c.TombstoneLimit = -1 }, "--tombstone-limit"},
		"bytes of tombstones":   {func(c *server.Config) { c.TombstoneBytes = -1 }, "--tombstone-bytes"},
		"age of tombstones":     {func(c *server.Config) { c.TombstoneAge = -1 }, "--tombstone-age"},
		"authorization":         {func(c *server.Config) { c.AuthorizationModes = []string{"ABAC"} }, "--authorization-mode"},
		"no webhook file":       {func(c *server.Config) { c.AuthorizationModes = []string{"Webhook"} }, "--authorization-webhook-config-file"},
		"webhook file alone":    {func(c *server.Config) { c.AuthorizationWebhook.ConfigFile = "x" }, "--authorization-mode"},
		"filter without RBAC":   {func(c *server.Config) { c.FilteredLists = true; c.AuthorizationModes = []string{"AlwaysAllow"} }, "--filtered-lists"},
		"filter after webhook": {func(c *server.Config) {
			c.FilteredLists, c.AuthorizationModes = true, []string{"Webhook", "RBAC"}
		}, "before Webhook"},
		"authorization twice": {func(c *server.Config) { c.AuthorizationModes = []string{"RBAC", "RBAC"} }, "--authorization-mode"},
		"anonymous": {func(c *server.Config) {
			c.AuthorizationModes, c.Authentication.Anonymous = []string{"AlwaysAllow"}, new(true)
		}, "--anonymous-auth"},
		"no proxy's authority":    {func(c *server.Config) { c.Authentication.RequestHeader.AllowedNames = []string{"a"} }, "--requestheader-client-ca-file"},
		"config and modes":        {func(c *server.Config) { c.AuthorizationConfigFile, c.AuthorizationModes = "x", []string{"RBAC"} }, "--authorization-config cannot be combined"},
		"config and webhook":      {func(c *server.Config) { c.AuthorizationConfigFile, c.AuthorizationWebhook.Version = "x", "v1" }, "--authorization-config cannot be combined"},
		"no authorization config": {func(c *server.Config) { c.AuthorizationConfigFile = "missing" }, "--authorization-config: open missing"},
		"filter by a file that asks a webhook first": {func(c *server.Config) {
			c.FilteredLists, c.AuthorizationConfigFile = true, mustWrite(t, "authorization.yaml", authorizationConfig(mustWrite(t, "kubeconfig", nil), "true"))
		}, "--filtered-lists needs RBAC before Webhook in --authorization-config"},
		"filter by a file without RBAC": {func(c *server.Config) {
			c.FilteredLists, c.AuthorizationConfigFile = true, mustWrite(t, "authorization.yaml", authorizersFile("{type: AlwaysAllow, name: all}"))
		}, "--filtered-lists needs RBAC in --authorization-config"},
		"a nameless header": {func(c *server.Config) {
			h := &c.Authentication.RequestHeader
			h.ClientCAFile, h.UIDHeaders = "x", []string{" "}
		}, "--requestheader-uid-headers"},
		"admission plugin":                      {func(c *server.Config) { c.DisableAdmissionPlugins = []string{"ServiceAccounts"} }, "--disable-admission-plugins"},
		"issuer":                                {func(c *server.Config) { c.ServiceAccountIssuers = []string{""} }, "--service-account-issuer"},
		"lifetime of tokens":                    {func(c *server.Config) { c.ServiceAccountMaxTokenExpiration = time.Minute }, "--service-account-max-token-expiration"},
		"URL of the keys":                       {func(c *server.Config) { c.ServiceAccountJWKSURI = "http://keys.example" }, "--service-account-jwks-uri"},
		"bodies":                                {func(c *server.Config) { c.MaxBodyBytesInFlight = 1 << 20 }, "--max-body-bytes-inflight"},
		"connections of a user":                 {func(c *server.Config) { c.MaxConnectionsPerUser = -1 }, "--max-connections-per-user -1 must not be negative"},
		"watches of a user":                     {func(c *server.Config) { c.MaxWatchesPerUser = -1 }, "--max-watches-per-user -1 must not be negative"},
		"watches of one user, more than of all": {func(c *server.Config) { c.MaxWatches, c.MaxWatchesPerUser = 10, 11 }, "--max-watches-per-user 11 is more than --max-watches 10"},
		"connections of one user, more than of all":        {func(c *server.Config) { c.MaxConnections, c.MaxConnectionsPerUser = 10, 11 }, "--max-connections-per-user 11 is more than --max-connections 10"},
		"watches of one user, more than of all by default": {func(c *server.Config) { c.MaxWatchesPerUser = 1_000_001 }, "--max-watches-per-user 1000001 is more than --max-watches 1000000"},
		"selectors":      {func(c *server.Config) { c.MaxSelectorBytes = -1 }, "--max-selector-bytes"},
		"old TLS":        {func(c *server.Config) { c.TLSMinVersion = "VersionTLS11" }, "--tls-min-version"},
		"insecure suite": {func(c *server.Config) { c.TLSCipherSuites = []string{"TLS_RSA_WITH_RC4_128_SHA"} }, "--tls-cipher-suites"},
		"no suite of HTTP/2": {func(c *server.Config) {
			c.TLSCipherSuites = []string{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}
		}, "--tls-cipher-suites"},
		"half a certificate": {func(c *server.Config) { c.TLSCertFile = "x" }, "--tls-private-key-file"},
		"HTTP/2 server":      {func(c *server.Config) { c.HTTP2Server = "nginx" }, "--http2-server"},
		"negative time":      {func(c *server.Config) { c.ShutdownTimeout = -1 }, "time to shut down"},
		"relay of itself": {func(c *server.Config) {
			c.SecurePort, c.Relay = 7443, &server.Relay{Config: &rest.Config{Host: "https://localhost:7443"}}
		}, "--kubeconfig leads to https://localhost:7443"},
		"relay of itself, everywhere": {func(c *server.Config) {
			c.BindAddress, c.Relay = "0.0.0.0", &server.Relay{Config: &rest.Config{Host: "https://127.0.0.1:6443/prefix"}}
			c.SecurePort = 0 // the default
		}, "--kubeconfig leads to https://127.0.0.1:6443"},
		"relay of no address": {func(c *server.Config) {
			c.SecurePort, c.Relay = 7443, &server.Relay{Config: &rest.Config{Host: "https://a b"}}
		}, "--kubeconfig"},
		"service network": {func(c *server.Config) { c.ServiceCIDR = netip.MustParsePrefix("10.0.0.0/31") }, "--service-cidr"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			config := server.Config{DataDir: dir, SecurePort: server.AnyPort}
			test.change(&config)
			_, err := server.Listen(config)
			var refusal *server.ConfigError
			if !errors.As(err, &refusal) {
				t.Fatalf("error %v is no ConfigError", err)
			}
			mustBeOneLine(t, err, test.names)
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the data directory was touched: %v", err)
			}
		})
	}
}

func mustBeOneLine(t *testing.T, err error, names string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, names) {
		t.Errorf("error %q is not one line that names %s", text, names)
	}
}

// TestUnusableMachine: errors of the machine, not of the flags.
func TestUnusableMachine(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.Mkdir(filepath.Join(broken, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, filepath.Join(broken, "pki", "ca.crt")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config server.Config
		names  string
	}{
		"the port is in use":           {server.Config{DataDir: t.TempDir(), SecurePort: taken.Port}, taken.String() + " is in use"},
		"no client authority":          {server.Config{DataDir: t.TempDir(), ClientCAFile: file}, "--client-ca-file"},
		"no tokens":                    {server.Config{DataDir: t.TempDir(), TokenAuthFile: "no/such/file"}, "--token-auth-file"},
		"no serving certificate":       {server.Config{DataDir: t.TempDir(), TLSCertFile: file, TLSKeyFile: file}, "--tls-cert-file"},
		"no signing key":               {server.Config{DataDir: t.TempDir(), ServiceAccountSigningKeyFile: file}, "--service-account-signing-key-file"},
		"no token key":                 {server.Config{DataDir: t.TempDir(), ServiceAccountKeyFiles: []string{file}}, "--service-account-key-file"},
		"the address is another's":     {server.Config{DataDir: t.TempDir(), BindAddress: "192.0.2.1"}, "--bind-address"},
		"the data directory is a file": {server.Config{DataDir: file}, file},
		"it is below a file":           {server.Config{DataDir: filepath.Join(file, "below")}, file},
		"the certificates are broken":  {server.Config{DataDir: broken, SecurePort: server.AnyPort}, filepath.Join("pki", "ca.crt")},
	} {
		t.Run(name, func(t *testing.T) {
			if test.config.SecurePort == 0 {
				test.config.SecurePort = server.AnyPort // the default may be in use
			}
			_, err := server.Listen(test.config)
			mustBeOneLine(t, err, test.names)
			var refusal *server.ConfigError
			if errors.As(err, &refusal) {
				t.Errorf("%v is the machine's fault, and reported as the configuration's", err)
			}
		})
	}
}

func TestUnwritableDataDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("permissions do not bind root")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := server.Listen(server.Config{DataDir: dir, SecurePort: server.AnyPort})
	mustBeOneLine(t, err, "--data-dir "+dir)
}

// TestDataDirectoryInUse: the second server on a directory fails at once, and the
// first one is not affected.
func TestDataDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	first := start(t, server.Config{DataDir: dir})
	kubeconfig := read(t, first.Kubeconfig())

	second, err := server.Listen(server.Config{DataDir: dir, SecurePort: server.AnyPort})
	if err == nil {
		err = second.Run(deadline(t))
	}
	mustBeOneLine(t, err, "in use by another process")
	if got := read(t, first.Kubeconfig()); got != kubeconfig {
		t.Error("the kubeconfig of the server that runs was overwritten by the one that was refused")
	}
	create(deadline(t), t, first.client(t), "still-served")
}

// TestShutdownBeforeReady: a server that is shut down while it starts returns
// without an error.
func TestShutdownBeforeReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, storage := range server.Storages {
		config := server.Config{DataDir: t.TempDir(), SecurePort: server.AnyPort, Storage: storage}
		if storage == server.Etcd {
			config.EtcdServers = []string{"http://" + unusedAddress(t)}
		}
		s, err := server.Listen(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(ctx); err != nil {
			t.Errorf("%s: %v", storage, err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestMoreConnectionsOfAUserThanTheDefaultOfAll are refused, where there is a default.
func TestMoreConnectionsOfAUserThanTheDefaultOfAll(t *testing.T) {
	most := listen.DefaultLimit()
	if most == 0 {
		most = 10 // this process may open as many files as it likes
	}
	config := server.Config{DataDir: filepath.Join(t.TempDir(), "data"), SecurePort: server.AnyPort, MaxConnectionsPerUser: most + 1}
	if listen.DefaultLimit() == 0 {
		config.MaxConnections = most
	}
	_, err := server.Listen(config)
	mustBeOneLine(t, err, fmt.Sprintf("--max-connections-per-user %d is more than --max-connections %d", most+1, most))
}
