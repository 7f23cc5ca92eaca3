package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	utilwebhook "k8s.io/apiserver/pkg/util/webhook"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// The name under which a Request keeps the reinvocation.
const reinvocationKey = "MutatingAdmissionWebhook"

// reinvocation is what the second round needs to know of the first.
type reinvocation struct {
	last     resource.Object // as the webhooks have left it
	eligible map[string]bool // hooks that were called since the last change, and want to see changes
	required map[string]bool // hooks that are called in the second round
}

// require makes the eligible hooks required: the object has changed since they saw it.
func (v *reinvocation) require() {
	for id := range v.eligible {
		v.required[id] = true
	}
	clear(v.eligible)
}

// Mutate is the mutating phase: it calls the mutating webhooks that match, one after the
// other, and applies their patches.
func (p *Plugin) Mutate(ctx context.Context, q *registry.Request) error {
	hooks, err := p.current(ctx, p.mutating)
	if err != nil || len(hooks) == 0 {
		return err
	}
	r, err := p.newRequest(ctx, q)
	if r == nil || err != nil {
		return err
	}
	again, ok := q.Kept(reinvocationKey).(*reinvocation)
	if !ok {
		again = &reinvocation{eligible: map[string]bool{}, required: map[string]bool{}}
		q.Keep(reinvocationKey, again)
	} else if q.Reinvoked && !equality.Semantic.DeepEqual(again.last, q.Object) {
		again.require() // other plugins have changed the object
	}
	for i, h := range hooks {
		v, err := r.matches(ctx, h)
		if err != nil {
			return err
		}
		if v == nil || q.Reinvoked && !again.required[h.id()] {
			continue // the second round calls no hook for the first time
		}
		changed, err := r.mutateBy(ctx, h, v, i)
		if changed {
			again.require()
			q.AskAgain()
		}
		if h.ReinvocationPolicy != nil && *h.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
			again.eligible[h.id()] = true
		}
		if err != nil {
			return err
		}
	}
	if q.Object != nil && !q.Reinvoked {
		again.last = q.Object.DeepCopyObject().(resource.Object)
	}
	return nil
}

// mutateBy calls one webhook and applies its patch. index is the webhook's place among all.
func (r *request) mutateBy(ctx context.Context, h *hook, v *version, index int) (changed bool, err error) {
	round := 0
	if r.q.Reinvoked {
		round = 1
	}
	at := fmt.Sprintf("round_%d_index_%d", round, index)
	began := time.Now()
	response, err := r.call(ctx, h, v, true)
	if err == nil && len(response.Patch) > 0 {
		if changed, err = r.applyPatch(ctx, h, v, response); err == nil {
			annotate(ctx, "patch.webhook.admission.k8s.io/"+at, patchAnnotation{h.configuration, h.Name, response.Patch, string(*response.PatchType)})
		}
	}
	annotate(ctx, "mutation.webhook.admission.k8s.io/"+at, mutationAnnotation{h.configuration, h.Name, changed})
	failedOpen, refusal := r.verdict(ctx, h, "admit", began, err)
	if failedOpen {
		reporter.Annotate(ctx, "failed-open.mutation.webhook.admission.k8s.io/"+at, h.Name)
	}
	return changed, refusal
}

// applyPatch puts the patched object in the place of the request's.
func (r *request) applyPatch(ctx context.Context, h *hook, v *version, response *admissionv1.AdmissionResponse) (bool, error) {
	if *response.PatchType != admissionv1.PatchTypeJSONPatch {
		return false, &utilwebhook.ErrCallingWebhook{
			WebhookName: h.Name, Reason: fmt.Errorf("unsupported patch type %q", *response.PatchType), Status: webhookerrors.ToStatusErr(h.Name, response.Result),
		}
	}
	var operations []json.RawMessage
	err := json.Unmarshal(response.Patch, &operations)
	if err == nil && len(operations) == 0 {
		return false, nil
	}
	var p *patch.Patch
	if err == nil {
		p, err = patch.Parse(types.JSONPatchType, response.Patch)
	}
	if err != nil {
		return false, &utilwebhook.ErrCallingWebhook{
			WebhookName: h.Name, Reason: fmt.Errorf("received undecodable patch in webhook response: %w", err),
			Status: apierrors.NewServiceUnavailable("error decoding patch in webhook response"),
		}
	}
	if v.object == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.Name))
	}
	patched, err := p.Apply(v.object, nil)
	if err == nil {
		var changed bool
		if changed, err = r.replace(ctx, v, patched); err == nil {
			return changed, nil
		}
	}
	return false, apierrors.NewInternalError(fmt.Errorf("the patch of admission webhook %q does not fit the object: %w", h.Name, err))
}

type mutationAnnotation struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Mutated       bool   `json:"mutated"`
}

type patchAnnotation struct {
	Configuration string          `json:"configuration"`
	Webhook       string          `json:"webhook"`
	Patch         json.RawMessage `json:"patch,omitempty"`
	PatchType     string          `json:"patchType,omitempty"`
}

// annotate writes a value as JSON into the audit event.
func annotate(ctx context.Context, key string, value any) {
	if reporter.From(ctx) == nil {
		return
	}
	if text, err := json.Marshal(value); err == nil {
		reporter.Annotate(ctx, key, string(text))
	}
}
