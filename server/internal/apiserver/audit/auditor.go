package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/plugin/pkg/audit/log"

	"github.com/levelwire/levelwire/server/internal/configfile"
)

// Config says what is audited, and where to. The zero value audits nothing.
type Config struct {
	// PolicyFile has a Policy of audit.k8s.io/v1. It goes with a log or a webhook.
	PolicyFile string

	// LogPath is the file that gets one event a line; "-" is standard output. It is
	// replaced when it has LogMaxSize megabytes (0: 100); former files are deleted when
	// they are LogMaxAge days old, and when there are more than LogMaxBackups of them
	// (0: never), and compressed with LogCompress.
	LogPath                              string
	LogMaxAge, LogMaxBackups, LogMaxSize int
	LogCompress                          bool
	// LogFormat is json, the default, or legacy: a line of text without objects.
	LogFormat string
	// WebhookConfigFile is the kubeconfig of a server that gets events in batches.
	WebhookConfigFile string
	// WebhookBackoff is how long the server waits before it repeats a batch that the
	// webhook has not taken; each further time half as long again. Default 10 s.
	WebhookBackoff time.Duration

	// LogDelivery and WebhookDelivery say how the two get their events.
	LogDelivery, WebhookDelivery Delivery
	// BufferBytes is how large the events may be together that each of them is owed in
	// ModeBatch: more are lost. Default 64 MiB.
	BufferBytes int64
}

// Enabled reports whether anything is configured.
func (c *Config) Enabled() bool {
	return c.PolicyFile != "" || c.LogPath != "" || c.WebhookConfigFile != ""
}

// Validate reads the files, and sets defaults. An error is one line that names the flag
// and the file.
func (c *Config) Validate() error {
	switch {
	case !c.Enabled():
		return nil
	case c.PolicyFile == "" && c.LogPath != "":
		return errors.New("--audit-log-path needs --audit-policy-file, which says what is audited")
	case c.PolicyFile == "":
		return errors.New("--audit-webhook-config-file needs --audit-policy-file, which says what is audited")
	case c.LogPath == "" && c.WebhookConfigFile == "":
		return errors.New("--audit-policy-file needs --audit-log-path or --audit-webhook-config-file, which say where to")
	case min(c.LogMaxAge, c.LogMaxBackups, c.LogMaxSize) < 0:
		return errors.New("--audit-log-maxage, --audit-log-maxbackup and --audit-log-maxsize must not be negative")
	case c.LogFormat == "":
		c.LogFormat = log.FormatJson
	case !slices.Contains(log.AllowedFormats, c.LogFormat):
		return fmt.Errorf("--audit-log-format %q is none of %s", c.LogFormat, strings.Join(log.AllowedFormats, ", "))
	}
	if c.BufferBytes < 0 || c.WebhookBackoff < 0 {
		return errors.New("--audit-buffer-bytes and --audit-webhook-initial-backoff must not be negative")
	}
	setDefault(&c.WebhookBackoff, 10*time.Second)
	setDefault(&c.BufferBytes, 64<<20)
	if err := c.completeDeliveries(); err != nil {
		return configfile.OneLine(err)
	}
	if _, err := readPolicy(c.PolicyFile); err != nil {
		return fmt.Errorf("--audit-policy-file: %w", err)
	}
	if c.WebhookConfigFile != "" {
		if _, err := webhookClient(c.WebhookConfigFile); err != nil {
			return fmt.Errorf("--audit-webhook-config-file: %s: %w", c.WebhookConfigFile, configfile.OneLine(err))
		}
	}
	return nil
}

func setDefault[T comparable](value *T, to T) {
	if zero := *new(T); *value == zero {
		*value = to
	}
}

// readPolicy reads a file with a Policy. An error is one line that names the file.
func readPolicy(path string) (*auditinternal.Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	err = configfile.CheckKind(data, "Policy", auditv1.SchemeGroupVersion.String())
	var rules *auditinternal.Policy
	if err == nil {
		rules, err = policy.LoadPolicyFromBytes(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, configfile.OneLine(err))
	}
	return rules, nil
}

// groupVersion is that of the events that are written.
var groupVersion schema.GroupVersion = auditv1.SchemeGroupVersion

// Auditor audits requests. Its methods may be called concurrently.
type Auditor struct {
	policy  *rules
	sinks   []sink
	metrics *metrics
	cancel  context.CancelFunc // ends calls of the webhook
	closing sync.Once
}

// New returns an Auditor of a validated configuration; nil if that audits nothing. It
// must be closed.
func New(config Config, logger *slog.Logger) (*Auditor, error) {
	if !config.Enabled() {
		return nil, nil
	}
	rules, err := readPolicy(config.PolicyFile)
	if err != nil {
		return nil, fmt.Errorf("--audit-policy-file: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Auditor{policy: newRules(rules), metrics: newMetrics(), cancel: cancel}
	add := func(b backend, d *Delivery, senders int) {
		a.sinks = append(a.sinks, newSink(b, d.Mode, d.limits(config.BufferBytes, senders), a.metrics, logger))
	}
	if config.LogPath != "" {
		b, err := newLog(&config)
		if err != nil {
			a.Close(ctx)
			return nil, fmt.Errorf("--audit-log-path: %w", err)
		}
		add(b, &config.LogDelivery, 1)
	}
	if config.WebhookConfigFile != "" {
		b, err := newWebhook(ctx, &config, logger)
		if err != nil {
			a.Close(ctx)
			return nil, fmt.Errorf("--audit-webhook-config-file: %s: %w", config.WebhookConfigFile, configfile.OneLine(err))
		}
		add(b, &config.WebhookDelivery, webhookSenders)
	}
	return a, nil
}

// Close sends what the queues hold, until ctx ends; the rest is lost. A backend that
// hangs in a write to a file is not waited for. Close of a nil Auditor does nothing.
func (a *Auditor) Close(ctx context.Context) {
	if a == nil {
		return
	}
	a.closing.Do(func() {
		defer a.cancel()
		for _, q := range a.sinks {
			q.close()
		}
		for _, q := range a.sinks {
			q.await(ctx)
		}
		a.cancel()
		for _, q := range a.sinks {
			q.end()
		}
	})
}

// emit hands one event to all backends. Each gets a copy, because truncation writes to it.
// It reports whether the request may go on.
func (a *Auditor) emit(event *auditinternal.Event) bool {
	a.metrics.events.Inc()
	goOn := true
	for _, s := range a.sinks {
		goOn = s.add(event) && goOn
	}
	return goOn
}
