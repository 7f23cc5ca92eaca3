package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/server"
)

// registerAuthentication adds the flags of the ways to be authenticated that are off by
// default, under kube-apiserver's names.
func registerAuthentication(cmd *cobra.Command, a *server.Authentication) {
	flags, h := cmd.Flags(), &a.RequestHeader
	flags.StringVar(&a.ConfigFile, "authentication-config", "", "file of the kind AuthenticationConfiguration: issuers of JSON web tokens (OpenID Connect), and paths that need no credentials")
	flags.StringVar(&a.WebhookConfigFile, "authentication-token-webhook-config-file", "", "kubeconfig of a server that answers TokenReviews about tokens that are of no other kind")
	flags.DurationVar(&a.WebhookCacheTTL, "authentication-token-webhook-cache-ttl", 0, "how long its answers are remembered (default 2m0s)")
	flags.StringVar(&a.WebhookVersion, "authentication-token-webhook-version", "", "version of these TokenReviews, v1 or v1beta1 (default v1beta1)")
	flags.Var(&optionalBool{&a.Anonymous}, "anonymous-auth", "make requests without credentials as the user system:anonymous (true), or refuse them all (false) (default: only health checks and /version are answered)")
	flags.Lookup("anonymous-auth").NoOptDefVal = "true"
	flags.BoolVar(&a.BootstrapTokens, "enable-bootstrap-token-auth", false, "accept the tokens in secrets of the type bootstrap.kubernetes.io/token in kube-system")
	flags.StringVar(&h.ClientCAFile, "requestheader-client-ca-file", "", "PEM file of the authorities that certify proxies, which name their users in headers")
	flags.StringSliceVar(&h.AllowedNames, "requestheader-allowed-names", nil, "common names of the proxies' certificates (default: all that the authorities certify)")
	flags.StringSliceVar(&h.UsernameHeaders, "requestheader-username-headers", nil, "headers with the user's name (default X-Remote-User)")
	flags.StringSliceVar(&h.UIDHeaders, "requestheader-uid-headers", nil, "headers with the user's uid (default X-Remote-Uid)")
	flags.StringSliceVar(&h.GroupHeaders, "requestheader-group-headers", nil, "headers with the user's groups (default X-Remote-Group)")
	flags.StringSliceVar(&h.ExtraHeadersPrefix, "requestheader-extra-headers-prefix", nil, "how headers with further information begin (default X-Remote-Extra-)")
	flags.StringVar(&a.ProxyClientCertFile, "proxy-client-cert-file", "", "PEM file of the client certificate by which aggregated servers recognize this one; --requestheader-client-ca-file has its authority (default: one that the server makes)")
	flags.StringVar(&a.ProxyClientKeyFile, "proxy-client-key-file", "", "PEM file of its private key")
}

// optionalBool is a flag that is nil unless it is set.
type optionalBool struct{ value **bool }

// Set implements pflag.Value.
func (o *optionalBool) Set(text string) error {
	parsed, err := strconv.ParseBool(text)
	if err == nil {
		*o.value = &parsed
	}
	return err
}

// String implements pflag.Value.
func (o *optionalBool) String() string {
	if o.value == nil || *o.value == nil {
		return ""
	}
	return strconv.FormatBool(**o.value)
}

// Type implements pflag.Value.
func (o *optionalBool) Type() string { return "bool" }
