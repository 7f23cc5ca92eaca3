package main

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/server"
)

// apiServerFlags are those of kube-apiserver that mean something here.
type apiServerFlags struct {
	config      server.Config
	certDir     string
	serviceCIDR string
	disabled    []string
	modes       []string
	enabled     []string
	audit       auditLogFlags
}

// standInShutdown is short: a test has no use for answers once it stops its
// server, and every package of tests has a server to stop.
const standInShutdown = 100 * time.Millisecond

func newAPIServerStandIn() *cobra.Command {
	var flags apiServerFlags
	cmd := lenient(&cobra.Command{
		Use:   "kube-apiserver",
		Short: "Levelwire's API server, in place of kube-apiserver",
		Long: `Levelwire's API server with kube-apiserver's flags, for tests. Objects live in
memory and are gone when it stops, whatever --etcd-servers says. Flags, and values of
--authorization-mode, that it does not know are ignored.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.serve(cmd) },
	})
	flags.register(cmd)
	return cmd
}

func (f *apiServerFlags) register(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.StringVar(&c.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on")
	flags.IntVar(&c.SecurePort, "secure-port", 6443, "port for HTTPS")
	flags.StringVar(&f.certDir, "cert-dir", "", "directory of apiserver.crt and apiserver.key")
	flags.StringVar(&c.TLSCertFile, "tls-cert-file", "", "serving certificate")
	flags.StringVar(&c.TLSKeyFile, "tls-private-key-file", "", "key of the serving certificate")
	flags.StringVar(&c.ClientCAFile, "client-ca-file", "", "authority that certifies users")
	registerAuthentication(cmd, &c.Authentication)
	registerAuthorizers(cmd, c)
	registerAdmissionConfig(cmd, c)
	registerTokens(cmd, c)
	registerEncryption(cmd, c)
	f.audit.register(cmd, c)
	flags.StringVar(&c.TokenAuthFile, "token-auth-file", "", "file of bearer tokens")
	flags.StringArrayVar(&c.ServiceAccountIssuers, "service-account-issuer", nil, "issuer of the tokens of service accounts")
	flags.StringVar(&c.ServiceAccountSigningKeyFile, "service-account-signing-key-file", "", "key that signs these tokens")
	flags.StringSliceVar(&c.ServiceAccountKeyFiles, "service-account-key-file", nil, "keys or certificates that verify these tokens")
	flags.StringSliceVar(&c.APIAudiences, "api-audiences", nil, "what the server calls itself in tokens")
	flags.StringVar(&f.serviceCIDR, "service-cluster-ip-range", "10.96.0.0/16", "network that Services get their addresses from")
	flags.StringSliceVar(&f.modes, "authorization-mode", nil, "what decides which requests users may make (default Node,RBAC)")
	flags.StringSliceVar(&f.disabled, "disable-admission-plugins", nil, "admission plugins that have no say")
	flags.StringSliceVar(&f.enabled, "enable-admission-plugins", nil, "admission plugins that have a say although they are disabled")
}

func (f *apiServerFlags) serve(cmd *cobra.Command) (err error) {
	c, err := f.complete(cmd)
	if err != nil {
		return err
	}
	// The folder of the certificates is the test's own, and goes with it.
	if c.DataDir, err = os.MkdirTemp(f.certDir, "levelwire-*"); err != nil {
		return err
	}
	defer func() {
		if removed := os.RemoveAll(c.DataDir); err == nil {
			err = removed
		}
	}()
	log := cli.Logging{Level: "error", Format: "text"}
	if c.Logger, err = log.Logger(cmd.ErrOrStderr()); err != nil {
		return err
	}
	s, err := server.Listen(c)
	if err != nil {
		return err
	}
	ctx, cancel := asLongAsItsParent(cmd.Context())
	defer cancel()
	return s.Run(ctx)
}

// complete makes the configuration that the flags mean.
func (f *apiServerFlags) complete(cmd *cobra.Command) (server.Config, error) {
	c := f.config
	c.Storage, c.Version, c.ShutdownTimeout = server.Memory, cli.Version(), standInShutdown
	// Dual-stack clusters name two networks, of which the first is the main one.
	first, _, _ := strings.Cut(f.serviceCIDR, ",")
	cidr, err := netip.ParsePrefix(first)
	if err != nil {
		return c, cli.Usage(fmt.Errorf("--service-cluster-ip-range %q is not a network such as 10.0.0.0/24", f.serviceCIDR))
	}
	c.ServiceCIDR = cidr
	if err := f.completeAudit(cmd, &c); err != nil {
		return c, cli.Usage(err)
	}
	certificate, key := filepath.Join(f.certDir, "apiserver.crt"), filepath.Join(f.certDir, "apiserver.key")
	if f.certDir != "" && c.TLSCertFile == "" && isFile(certificate) && isFile(key) {
		c.TLSCertFile, c.TLSKeyFile = certificate, key
	}
	for _, mode := range f.modes {
		if slices.Contains(server.AuthorizationModes(), mode) {
			c.AuthorizationModes = append(c.AuthorizationModes, mode)
		}
	}
	if slices.Contains(c.AuthorizationModes, "AlwaysAllow") {
		c.Authentication.Anonymous = nil // kube-apiserver ignores the flag then, too
	}
	if c.AuthorizationWebhook.ConfigFile != "" && !cmd.Flags().Changed("authorization-webhook-version") {
		c.AuthorizationWebhook.Version = "v1beta1" // kube-apiserver's default
	}
	f.choosePlugins(&c)
	err = completeAuthorization(cmd, &c)
	return c, err
}

// choosePlugins disables and enables the admission plugins that there are.
func (f *apiServerFlags) choosePlugins(c *server.Config) {
	for _, name := range f.disabled {
		if slices.Contains(server.AdmissionPlugins(), name) && !slices.Contains(f.enabled, name) {
			c.DisableAdmissionPlugins = append(c.DisableAdmissionPlugins, name)
		}
	}
	for _, name := range f.enabled {
		if slices.Contains(server.AdmissionPlugins(), name) {
			c.EnableAdmissionPlugins = append(c.EnableAdmissionPlugins, name)
		}
	}
}

// completeAudit has requests wait for the audit log, as they do in kube-apiserver by default: a test
// reads it right after its request. Without a policy or without a backend, nothing is audited.
func (f *apiServerFlags) completeAudit(cmd *cobra.Command, c *server.Config) error {
	if c.Audit.PolicyFile == "" || c.Audit.LogPath == "" && c.Audit.WebhookConfigFile == "" {
		c.Audit = server.AuditConfig{}
		return nil
	}
	if !cmd.Flags().Changed("audit-log-mode") {
		c.Audit.LogDelivery.Mode = "blocking"
	}
	return f.audit.complete(c)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeType == 0
}
