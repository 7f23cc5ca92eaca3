package audit

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

const (
	// webhookSenders is how many batches are posted at a time.
	webhookSenders = 4
	// webhookAttempts is how often a batch is posted before it is lost, as with
	// Kubernetes. An attempt may take 30 s.
	webhookAttempts = 5
	// webhookBackoffFactor is how much longer each further wait is.
	webhookBackoffFactor = 1.5
)

// webhookClient returns a client of the webhook that a kubeconfig names.
func webhookClient(kubeconfig string) (*rest.RESTClient, error) {
	config, err := webhook.LoadKubeconfig(kubeconfig, nil)
	if err != nil {
		return nil, err
	}
	generic, err := webhook.NewGenericWebhook(audit.Scheme, audit.Codecs, config, []schema.GroupVersion{groupVersion}, wait.Backoff{})
	if err != nil {
		return nil, err
	}
	return generic.RestClient, nil
}

// newWebhook returns the backend that posts batches. The end of ctx ends its calls.
func newWebhook(ctx context.Context, c *Config, logger *slog.Logger) (backend, error) {
	client, err := webhookClient(c.WebhookConfigFile)
	if err != nil {
		return backend{}, err
	}
	send := func(batch []*auditinternal.Event) map[string]int {
		lost, err := deliver(ctx, client, batch, c.WebhookBackoff)
		if err != nil {
			logger.Warn("the audit webhook has not taken events", "events", lost, "of", len(batch), "error", err)
		}
		return map[string]int{pluginWebhook: lost}
	}
	if c.WebhookDelivery.Truncate {
		send = truncated(&c.WebhookDelivery, send)
	}
	return backend{plugin: pluginWebhook, send: send, close: func() error {
		client.Client.CloseIdleConnections()
		return nil
	}}, nil
}

// deliver posts a batch; in halves if it is too large for the webhook, so that only events
// are lost that are too large by themselves. It returns how many are lost, and the last error.
func deliver(ctx context.Context, client *rest.RESTClient, batch []*auditinternal.Event, backoff time.Duration) (lost int, err error) {
	err = post(ctx, client, batch, backoff)
	switch {
	case err == nil:
		return 0, nil
	case len(batch) == 1 || !apierrors.IsRequestEntityTooLargeError(err):
		return len(batch), err
	}
	half := len(batch) / 2
	lost, err = deliver(ctx, client, batch[:half], backoff)
	more, err2 := deliver(ctx, client, batch[half:], backoff)
	return lost + more, cmp.Or(err2, err)
}

// post posts a batch, again if that fails, unless it is too large.
func post(ctx context.Context, client *rest.RESTClient, batch []*auditinternal.Event, backoff time.Duration) error {
	list := auditinternal.EventList{Items: make([]auditinternal.Event, len(batch))}
	for i, event := range batch {
		list.Items[i] = *event
	}
	for attempt := 1; ; attempt++ {
		err := client.Post().Body(&list).MaxRetries(0).Do(ctx).Error()
		if err == nil || attempt == webhookAttempts || apierrors.IsRequestEntityTooLargeError(err) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(backoff)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		backoff = time.Duration(float64(backoff) * webhookBackoffFactor)
	}
}
