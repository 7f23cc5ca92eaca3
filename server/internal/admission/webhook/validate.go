package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

// invocation is one call of a validating webhook.
type invocation struct {
	hook    *hook
	version *version
	refusal error
}

// Validate is the validating phase: it calls the validating webhooks that match at the
// same time. The refusal of the first in the order of the configurations counts.
func (p *Plugin) Validate(ctx context.Context, q *registry.Request) error {
	hooks, err := p.current(ctx, p.validating)
	if err != nil || len(hooks) == 0 {
		return err
	}
	r, err := p.newRequest(ctx, q)
	if r == nil || err != nil {
		return err
	}
	var invocations []*invocation
	for _, h := range hooks {
		v, err := r.matches(ctx, h)
		if err != nil {
			return err
		}
		if v != nil {
			invocations = append(invocations, &invocation{hook: h, version: v})
		}
	}
	if len(invocations) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	var calls sync.WaitGroup
	for i, in := range invocations[1:] {
		calls.Go(func() { r.validateBy(ctx, in, i+1) })
	}
	r.validateBy(ctx, invocations[0], 0)
	calls.Wait()
	for _, in := range invocations {
		if in.refusal != nil {
			return in.refusal
		}
	}
	return nil
}

// validateBy calls one webhook. It changes nothing that other calls read.
func (r *request) validateBy(ctx context.Context, in *invocation, index int) {
	defer func() {
		if reason := recover(); reason != nil {
			in.refusal = apierrors.NewInternalError(fmt.Errorf("ValidatingAdmissionWebhook/%v has panicked: %v", in.hook.Name, reason))
		}
	}()
	began := time.Now()
	_, err := r.call(ctx, in.hook, in.version, false)
	failedOpen, refusal := r.verdict(ctx, in.hook, "validating", began, err)
	if failedOpen {
		reporter.Annotate(ctx, fmt.Sprintf("failed-open.validating.webhook.admission.k8s.io/round_0_index_%d", index), in.hook.Name)
	}
	in.refusal = refusal
}
