package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	utilwebhook "k8s.io/apiserver/pkg/util/webhook"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/tracing"
)

// maxAnswerBytes bounds an answer: the patch of an object of 3 MiB in base64, and more.
const maxAnswerBytes = 16 << 20

// call asks a webhook about the request as of v. The error is a
// *utilwebhook.ErrCallingWebhook if there is no verdict, a *utilwebhook.ErrWebhookRejection
// if the verdict is a refusal, and a *apierrors.StatusError if the webhook cannot be asked
// about such a request.
func (r *request) call(ctx context.Context, h *hook, v *version, mutating bool) (*admissionv1.AdmissionResponse, error) {
	if r.q.DryRun && !h.supportsDryRun() {
		return nil, webhookerrors.NewDryRunUnsupportedErr(h.Name)
	}
	ctx, span := tracing.Start(ctx, "webhook", attribute.String("webhook.name", h.Name), attribute.String("webhook.configuration", h.configuration))
	calling := reporter.Measure(ctx, partOf(mutating))
	response, err := r.ask(ctx, h, v, mutating)
	calling.End()
	span.SetAttributes(attribute.Bool("webhook.allowed", err == nil && response.Allowed))
	tracing.End(span, err)
	if err != nil {
		return nil, err
	}
	for key, value := range response.AuditAnnotations {
		if key = h.Name + "/" + key; strings.Count(key, "/") == 1 && len(validation.IsQualifiedName(key)) == 0 {
			reporter.Annotate(ctx, key, value)
		}
	}
	for _, text := range response.Warnings {
		reporter.Warn(ctx, text)
	}
	if !response.Allowed {
		refusal := webhookerrors.ToStatusErr(h.Name, response.Result)
		if refusal.ErrStatus.Code >= maxCode {
			refusal.ErrStatus.Code = http.StatusInternalServerError // no code of HTTP
		}
		return nil, &utilwebhook.ErrWebhookRejection{Status: refusal}
	}
	return response, nil
}

// partOf is the part of the request's time that a call is.
func partOf(mutating bool) reporter.Part {
	if mutating {
		return reporter.MutatingWebhook
	}
	return reporter.ValidatingWebhook
}

// ask makes the HTTP request. It waits while maxCalls of the webhook are under way. The
// webhook's time begins with that.
func (r *request) ask(ctx context.Context, h *hook, v *version, mutating bool) (*admissionv1.AdmissionResponse, error) {
	failed := func(status *apierrors.StatusError, format string, args ...any) error {
		return &utilwebhook.ErrCallingWebhook{WebhookName: h.Name, Reason: fmt.Errorf(format, args...), Status: status}
	}
	if h.version == "" {
		return nil, failed(apierrors.NewBadRequest("error creating admission objects"),
			"could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")
	}
	if h.broken != nil {
		return nil, failed(apierrors.NewInternalError(h.broken), "could not get REST client: %w", h.broken)
	}
	uid := types.UID(uuid.NewString())
	body, err := r.review(h, v, uid)
	if err != nil {
		return nil, failed(apierrors.NewBadRequest("error creating admission objects"), "could not create admission objects: %w", err)
	}
	timed, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("it did not answer within %v", h.timeout))
	defer cancel()
	answer, err := h.post(timed, body)
	if err != nil {
		if cause := context.Cause(timed); cause != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", cause, context.DeadlineExceeded)
		}
		return nil, failed(apierrors.NewServiceUnavailable("error calling webhook"), "failed to call webhook: %w", err)
	}
	response, err := verify(h, mutating, uid, answer)
	if err != nil {
		return nil, failed(apierrors.NewServiceUnavailable("error validating webhook response"), "received invalid webhook response: %w", err)
	}
	return response, nil
}

func (h *hook) post(ctx context.Context, body []byte) ([]byte, error) {
	select {
	case h.calls <- struct{}{}:
		defer func() { <-h.calls }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%d calls of the webhook are under way: %w", maxCalls, ctx.Err())
	}
	query := url.Values{}
	if deadline, ok := ctx.Deadline(); ok {
		// In whole seconds, rounded up, as webhooks know it.
		left := (time.Until(deadline) + time.Second - 1).Truncate(time.Second)
		query.Set("timeout", left.String())
	}
	return h.client.Post(ctx, query, body, maxAnswerBytes)
}

// verdict is what a call comes to for the request: nil if it goes on. failedOpen says that
// it does although there was no verdict.
func (r *request) verdict(ctx context.Context, h *hook, kind string, began time.Time, err error) (failedOpen bool, refusal error) {
	m, operation := r.plugin.metrics, string(operationOf(r.q.Operation))
	var calling *utilwebhook.ErrCallingWebhook
	var rejection *utilwebhook.ErrWebhookRejection
	switch {
	case err == nil:
		m.observe(h.Name, kind, operation, began, false, 200)
		return false, nil
	case errors.As(err, &calling):
		code := int(calling.Status.ErrStatus.Code)
		m.observe(h.Name, kind, operation, began, !h.ignore, code)
		canceled := errors.Is(calling.Reason, context.Canceled)
		log := r.plugin.opts.Logger
		if !h.ignore {
			if !canceled {
				m.rejections.WithLabelValues(h.Name, kind, operation, "calling_webhook_error", fmt.Sprint(code)).Inc()
			}
			log.Warn("a webhook could not be called: the request is refused", "webhook", h.Name, "configuration", h.configuration, "error", calling.Reason)
			return false, apierrors.NewInternalError(calling)
		}
		if ctx.Err() != nil {
			return false, apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
		}
		m.failedOpen.WithLabelValues(h.Name, kind).Inc()
		log.Warn("a webhook could not be called: the request goes on without it", "webhook", h.Name, "configuration", h.configuration, "error", calling.Reason)
		return true, nil
	case errors.As(err, &rejection):
		code := int(rejection.Status.ErrStatus.Code)
		m.observe(h.Name, kind, operation, began, true, code)
		m.rejections.WithLabelValues(h.Name, kind, operation, "no_error", fmt.Sprint(code)).Inc()
		return false, rejection.Status
	}
	m.observe(h.Name, kind, operation, began, true, 0)
	m.rejections.WithLabelValues(h.Name, kind, operation, "apiserver_internal_error", "0").Inc()
	return false, err
}

// notReady is the error of a request that comes before the configurations were read.
func notReady(err error) error {
	if errors.Is(err, auth.ErrNotReady) {
		return apierrors.NewServiceUnavailable("the webhook configurations have not been read yet: try again")
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return err
	}
	return apierrors.NewInternalError(fmt.Errorf("webhook configurations: %w", err))
}
