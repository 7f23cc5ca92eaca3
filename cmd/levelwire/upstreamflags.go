package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
)

// The answers to kube-apiserver's flags that several have in common.
const (
	sayIssuers   = "write the issuer into the file of --authentication-config, which says the same"
	sayKubelets  = "this server does not call kubelets"
	sayOneServer = "servers on one etcd find each other there"
	sayGates     = "features are those that Kubernetes 1.37 has on by default"
	sayLogging   = "use --log-level and --log-format"
	sayListening = "sockets are opened with the system's defaults"
	sayMetrics   = "metrics cannot be configured: choose from them in Prometheus"
	sayCaches    = "all resources have watch caches, whose memory is bounded by the process's memory limit"
	sayElection  = "coordinated leader election is off by default in Kubernetes 1.37, and does not exist here"
	sayNothing   = "there is nothing to configure about it"
)

// upstreamFlags are the flags of kube-apiserver 1.37 that `serve` and `up` do not have, with
// what to do instead.
var upstreamFlags = map[string]string{
	// Authentication and authorization.
	"oidc-issuer-url": sayIssuers, "oidc-client-id": sayIssuers, "oidc-ca-file": sayIssuers, "oidc-username-claim": sayIssuers, "oidc-username-prefix": sayIssuers,
	"oidc-groups-claim": sayIssuers, "oidc-groups-prefix": sayIssuers, "oidc-signing-algs": sayIssuers, "oidc-required-claim": sayIssuers,
	"authorization-policy-file":        "the mode ABAC does not exist: write roles and bindings for RBAC",
	"service-account-lookup":           "tokens are always compared with the account and what they are bound to: leave it out",
	"service-account-signing-endpoint": "tokens are signed by a key in --service-account-signing-key-file",
	"admission-control":                "use --enable-admission-plugins or --disable-admission-plugins",

	"audit-webhook-batch-initial-backoff": "use --audit-webhook-initial-backoff",

	// TLS and HTTP.
	"tls-sni-cert-key":                        "one certificate is served, --tls-cert-file; give it all names",
	"tls-curve-preferences":                   "Go's choice of curves is used",
	"cert-dir":                                "certificates are made in the folder pki of --data-dir, unless --tls-cert-file names one",
	"disable-http2-serving":                   "HTTP/2 is always served",
	"http2-max-streams-per-connection":        "streams are bounded by --max-watches and by the requests at a time of each user",
	"goaway-chance":                           "connections are not closed to move clients to other servers",
	"request-timeout":                         "requests other than watches end after a minute",
	"min-request-timeout":                     "watches end after 30 to 60 minutes, unless the client asks for another time",
	"max-connection-bytes-per-sec":            "users are bounded by priority and fairness: see docs/operators/fairness.md",
	"cors-allowed-origins":                    "put a proxy that answers for other origins in front of the server",
	"strict-transport-security-directives":    "put a proxy that adds the header in front of the server",
	"permit-address-sharing":                  sayListening,
	"permit-port-sharing":                     sayListening,
	"advertise-address":                       "the Service kubernetes leads to --bind-address",
	"external-hostname":                       "use --tls-hosts for names in the certificate, and --service-account-jwks-uri for the URL of the keys",
	"egress-selector-config-file":             "webhooks and aggregated servers are called directly",
	"shutdown-send-retry-after":               "use --shutdown-delay-duration",
	"shutdown-watch-termination-grace-period": "use --shutdown-delay-duration; watches that end resume without a list",
	"livez-grace-period":                      "/livez does not wait for the start",

	// Resources.
	"service-cluster-ip-range":                    "use --service-cidr",
	"service-node-port-range":                     "node ports are 30000 to 32767",
	"event-ttl":                                   "events are kept for an hour",
	"runtime-config":                              "all versions that Kubernetes 1.37 has on by default are served",
	"runtime-config-emulation-forward-compatible": sayGates, "emulation-forward-compatible": sayGates, "emulated-version": sayGates,
	"min-compatibility-version": sayGates, "feature-gates": sayGates,
	"allow-privileged":          "privileged pods are allowed, unless PodSecurity refuses them",
	"enable-garbage-collector":  "the controllers collect garbage: levelwire controllers",
	"delete-collection-workers": sayNothing,

	// Storage.
	"etcd-prefix":                    "the prefix is /registry",
	"etcd-servers-overrides":         "all resources are in one etcd: that is what makes their resourceVersions comparable",
	"etcd-compaction-interval":       "use --compaction-interval",
	"etcd-count-metric-poll-period":  sayNothing,
	"etcd-db-metric-poll-interval":   sayNothing,
	"etcd-healthcheck-timeout":       sayNothing,
	"etcd-readycheck-timeout":        sayNothing,
	"lease-reuse-duration-seconds":   sayNothing,
	"storage-initialization-timeout": "the server waits for its storage, and logs that it does",
	"storage-backend":                "use --storage",
	"storage-media-type":             "objects are stored as Kubernetes does by default",
	"watch-cache":                    sayCaches,
	"watch-cache-sizes":              sayCaches,
	"default-watch-cache-size":       sayCaches,

	// Other servers.
	"enable-aggregator-routing":             "aggregated servers are called at the endpoints of their Services already",
	"aggregator-reject-forwarding-redirect": "redirections of aggregated servers are not followed",
	"apiserver-count":                       sayOneServer,
	"endpoint-reconciler-type":              sayOneServer,
	"peer-advertise-ip":                     sayOneServer,
	"peer-advertise-port":                   sayOneServer,
	"peer-ca-file":                          sayOneServer,
	"kubernetes-service-node-port":          "the Service kubernetes has no node port",
	"kubelet-certificate-authority":         sayKubelets,
	"kubelet-client-certificate":            sayKubelets,
	"kubelet-client-key":                    sayKubelets,
	"kubelet-port":                          sayKubelets,
	"kubelet-preferred-address-types":       sayKubelets,
	"kubelet-read-only-port":                sayKubelets,
	"kubelet-timeout":                       sayKubelets,
	"coordinated-leadership-lease-duration": sayElection,
	"coordinated-leadership-renew-deadline": sayElection,
	"coordinated-leadership-retry-period":   sayElection,

	// Logs, metrics and profiles.
	"version": "see 'levelwire version'", "v": sayLogging, "vmodule": sayLogging, "logging-format": sayLogging, "log-flush-frequency": sayLogging, "log-json-info-buffer-size": sayLogging,
	"log-json-split-stream": sayLogging, "log-text-info-buffer-size": sayLogging, "log-text-split-stream": sayLogging,
	"enable-logs-handler":             "the directory /var/log is not served",
	"contention-profiling":            "profiles of contention are not taken: --profiling has the others",
	"debug-socket-path":               "profiles are served at /debug/pprof/ with --profiling",
	"allow-metric-labels":             sayMetrics,
	"allow-metric-labels-manifest":    sayMetrics,
	"disabled-metrics":                sayMetrics,
	"show-hidden-metrics-for-version": sayMetrics,
}

// explainUpstreamFlags has a command say of a flag of kube-apiserver that it lacks what to do
// instead.
func explainUpstreamFlags(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			if instead, ok := upstreamFlags[unknown.GetSpecifiedName()]; ok {
				return cli.Usage(fmt.Errorf("--%s is a flag of kube-apiserver that does not exist here: %s", unknown.GetSpecifiedName(), instead))
			}
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
}
