package audit

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Delivery says how a backend gets its events. Its defaults are those of kube-apiserver,
// but for what is said here. Source:
// https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/#batching.
type Delivery struct {
	// Mode is how events get there: ModeBatch, the default, ModeBlocking or
	// ModeBlockingStrict. kube-apiserver's default for the log is ModeBlocking.
	Mode string
	// Version of the events. Default, and the only one: audit.k8s.io/v1.
	Version string

	// BufferSize is how many events the backend may owe in ModeBatch: more are lost.
	// Default 10000.
	BufferSize int
	// BatchSize is the most events of a batch. Default 400 for the webhook, 100 for the
	// log (kube-apiserver: 1).
	BatchSize int
	// BatchWait is how long a batch waits for more events. Default 30 s for the webhook; the
	// log does not wait.
	BatchWait time.Duration
	// BatchesPerSecond is how many batches the backend gets in a second on average, and
	// BatchBurst how many at once after a pause. What comes faster fills the buffer.
	// Defaults 10 and 15 for the webhook, no bound for the log. Negative: no bound.
	BatchesPerSecond float64
	BatchBurst       int

	// Truncate leaves objects out of events that are larger than MaxEventBytes, and divides
	// batches that are larger than MaxBatchBytes. Defaults 100 KiB and 10 MiB.
	Truncate                     bool
	MaxEventBytes, MaxBatchBytes int64
}

// The defaults of the two backends, beside those that they share.
var (
	logDelivery     = Delivery{BatchSize: 100, BatchesPerSecond: -1}
	webhookDelivery = Delivery{BatchSize: 400, BatchWait: 30 * time.Second, BatchesPerSecond: 10, BatchBurst: 15}
)

// complete sets defaults. An error is one line that names the flag; backend is part of its
// name.
func (d *Delivery) complete(backend string, defaults Delivery) error {
	flag := "--audit-" + backend
	switch {
	case min(d.BufferSize, d.BatchSize, d.BatchBurst) < 0 || d.BatchWait < 0:
		return fmt.Errorf("%s-batch-buffer-size, -batch-max-size, -batch-max-wait and -batch-throttle-burst must not be negative", flag)
	case min(d.MaxEventBytes, d.MaxBatchBytes) < 0:
		return fmt.Errorf("%s-truncate-max-event-size and -truncate-max-batch-size must not be negative", flag)
	}
	setDefault(&d.Version, groupVersion.String())
	if d.Version != groupVersion.String() {
		return fmt.Errorf("%s-version %q is not served: events have the version %s", flag, d.Version, groupVersion)
	}
	setDefault(&d.BufferSize, 10_000)
	setDefault(&d.BatchSize, defaults.BatchSize)
	setDefault(&d.BatchWait, defaults.BatchWait)
	setDefault(&d.BatchesPerSecond, defaults.BatchesPerSecond)
	setDefault(&d.BatchBurst, cmp.Or(defaults.BatchBurst, webhookDelivery.BatchBurst))
	setDefault(&d.MaxEventBytes, 100<<10)
	setDefault(&d.MaxBatchBytes, 10<<20)
	if d.MaxEventBytes > d.MaxBatchBytes {
		return fmt.Errorf("%s-truncate-max-batch-size %d must be at least -truncate-max-event-size %d", flag, d.MaxBatchBytes, d.MaxEventBytes)
	}
	return completeMode("audit-"+backend+"-mode", &d.Mode)
}

// completeDeliveries is complete for both backends.
func (c *Config) completeDeliveries() error {
	return errors.Join(c.LogDelivery.complete("log", logDelivery), c.WebhookDelivery.complete("webhook", webhookDelivery))
}

// limits bound a queue.
type limits struct {
	events  int   // that it holds, those that are being sent included
	bytes   int64 // of these
	batch   int   // events that are sent together
	senders int   // batches that are sent at a time
	wait    time.Duration

	perSecond float64 // batches; 0 or less: no bound
	burst     int
}

// limits returns those of the backend's queue.
func (d *Delivery) limits(bytes int64, senders int) limits {
	return limits{
		events: d.BufferSize, bytes: bytes, batch: d.BatchSize, senders: senders, wait: d.BatchWait,
		perSecond: d.BatchesPerSecond, burst: d.BatchBurst,
	}
}
