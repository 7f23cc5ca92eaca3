package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/server"
)

// throttleFlags are the flags of how many batches of audit events a backend gets.
type throttleFlags struct {
	enabled bool
	qps     float64
	burst   int
}

// auditLogFlags are the flags of the audit log that are no fields of server.AuditConfig.
type auditLogFlags struct{ log, webhook throttleFlags }

// register adds the flags of the audit log, under the names that Kubernetes gives them,
// --audit-buffer-bytes and --tracing-config-file.
func (f *auditLogFlags) register(cmd *cobra.Command, c *server.Config) {
	flags, a := cmd.Flags(), &c.Audit
	flags.StringVar(&c.TracingConfigFile, "tracing-config-file", "", "TracingConfiguration file of Kubernetes: where spans of requests and events are sent by OTLP, and of how many (default: nothing is traced)")
	flags.StringVar(&a.PolicyFile, "audit-policy-file", "", "audit Policy file of Kubernetes: which requests are audited, and how much of them (default: none)")
	flags.StringVar(&a.LogPath, "audit-log-path", "", "file that gets the audit events, one a line; - is standard output")
	flags.IntVar(&a.LogMaxAge, "audit-log-maxage", 366, "how many days replaced audit logs are kept; 0: for ever")
	flags.IntVar(&a.LogMaxBackups, "audit-log-maxbackup", 100, "how many replaced audit logs are kept; 0: all")
	flags.IntVar(&a.LogMaxSize, "audit-log-maxsize", 100, "how many megabytes the audit log may have before it is replaced")
	flags.BoolVar(&a.LogCompress, "audit-log-compress", false, "compress replaced audit logs with gzip")
	flags.StringVar(&a.LogFormat, "audit-log-format", "json", "format of the audit log: json, or legacy (a line of text without objects)")
	flags.StringVar(&a.WebhookConfigFile, "audit-webhook-config-file", "", "kubeconfig of a server that gets the audit events in batches")
	flags.DurationVar(&a.WebhookBackoff, "audit-webhook-initial-backoff", 10*time.Second, "how long to wait before a batch that failed is sent again")
	flags.Var((*cli.ByteSize)(&a.BufferBytes), "audit-buffer-bytes", "how large the audit events may be together that the log is owed, and the webhook; more are lost (default 64Mi)")
	f.log = throttleFlags{qps: 10, burst: 15}
	f.webhook = throttleFlags{enabled: true, qps: 10, burst: 15}
	registerDelivery(flags, "log", &a.LogDelivery, 100, 0, &f.log)
	registerDelivery(flags, "webhook", &a.WebhookDelivery, 400, 30*time.Second, &f.webhook)
}

// registerDelivery adds the flags that the log and the webhook both have.
func registerDelivery(flags *pflag.FlagSet, backend string, d *server.AuditDelivery, batch int, wait time.Duration, throttle *throttleFlags) {
	prefix := "audit-" + backend + "-"
	flags.StringVar(&d.Mode, prefix+"mode", "batch", "batch: no request waits for the audit "+backend+"; blocking: each waits until it has the request's events; blocking-strict: and fails if it cannot get the first one")
	flags.StringVar(&d.Version, prefix+"version", "audit.k8s.io/v1", "version of the audit events; there is no other one")
	flags.IntVar(&d.BufferSize, prefix+"batch-buffer-size", 10_000, "how many audit events the "+backend+" may be owed; more are lost")
	flags.IntVar(&d.BatchSize, prefix+"batch-max-size", batch, "most audit events of a batch")
	flags.DurationVar(&d.BatchWait, prefix+"batch-max-wait", wait, "how long a batch waits for more audit events")
	flags.BoolVar(&throttle.enabled, prefix+"batch-throttle-enable", throttle.enabled, "bound the batches in a second")
	flags.Float64Var(&throttle.qps, prefix+"batch-throttle-qps", throttle.qps, "how many batches a second that is, on average")
	flags.IntVar(&throttle.burst, prefix+"batch-throttle-burst", throttle.burst, "how many at once after a pause")
	flags.BoolVar(&d.Truncate, prefix+"truncate-enabled", false, "leave objects out of audit events that are too large, and divide batches that are")
	flags.Var((*cli.ByteSize)(&d.MaxEventBytes), prefix+"truncate-max-event-size", "how large an audit event may be with truncation (default 100Ki)")
	flags.Var((*cli.ByteSize)(&d.MaxBatchBytes), prefix+"truncate-max-batch-size", "how large a batch of them may be with truncation (default 10Mi)")
}

// complete applies the throttles.
func (f *auditLogFlags) complete(c *server.Config) error {
	for _, b := range []struct {
		name     string
		delivery *server.AuditDelivery
		flags    throttleFlags
	}{{"log", &c.Audit.LogDelivery, f.log}, {"webhook", &c.Audit.WebhookDelivery, f.webhook}} {
		switch {
		case !b.flags.enabled:
			b.delivery.BatchesPerSecond = -1
		case b.flags.qps <= 0 || b.flags.burst <= 0:
			return fmt.Errorf("--audit-%s-batch-throttle-qps %v and -burst %d must be positive, or set --audit-%[1]s-batch-throttle-enable=false", b.name, b.flags.qps, b.flags.burst)
		default:
			b.delivery.BatchesPerSecond, b.delivery.BatchBurst = b.flags.qps, b.flags.burst
		}
	}
	return nil
}
