package authorization

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Authorizer turns the decisions of an auth.Authorizer into answers. It is safe
// for concurrent use.
type Authorizer struct {
	decide auth.Authorizer
	// unconstrained are users who last impersonated others by the verb impersonate: that
	// is asked first for them, so that one decision is enough.
	unconstrained userSet
	metrics       *metrics
}

// New returns an Authorizer. If decide is an auth.RuleLister, it answers
// reviews of rules, too.
func New(decide auth.Authorizer) *Authorizer {
	return &Authorizer{decide: decide, metrics: newMetrics()}
}

// Authorize returns nil if something is allowed that a request needs, and otherwise the 403 for
// the client.
func (a *Authorizer) Authorize(ctx context.Context, attributes auth.Attributes) error {
	decision, reason, err := a.decide.Authorize(ctx, attributes)
	_, err = answer(attributes, decision, reason, err)
	return err
}

// AuthorizeRequest is Authorize for the request itself: the metrics count it, and it returns why
// it is allowed or not, for the audit log.
func (a *Authorizer) AuthorizeRequest(ctx context.Context, attributes auth.Attributes) (reason string, err error) {
	start := time.Now()
	decision, reason, err := a.decide.Authorize(ctx, attributes)
	a.metrics.authorized(decision, err, start)
	return answer(attributes, decision, reason, err)
}

// answer returns the reason of a decision for the audit log, and what the client is answered if it
// is not allowed.
func answer(attributes auth.Attributes, decision auth.Decision, reason string, err error) (string, error) {
	switch {
	case decision == auth.Allow:
		return reason, nil
	case errors.Is(err, auth.ErrNotReady):
		return "internal error", status.TooManyRequests(err.Error(), 1)
	case err != nil:
		return "internal error", apierrors.NewInternalError(fmt.Errorf("whether this is allowed could not be found out: %w", err))
	}
	return reason, forbidden(attributes, reason)
}

// AuthorizeNow is Authorize for a request that must not wait, and that reveals nothing:
// without a decision it is allowed.
func (a *Authorizer) AuthorizeNow(ctx context.Context, attributes auth.Attributes) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := a.AuthorizeRequest(ctx, attributes); apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// Reauthorize decides again about a request that was allowed and is still under way. It
// returns the 403 for the client if its right was withdrawn, and an error if that could not
// be found out.
func (a *Authorizer) Reauthorize(ctx context.Context, attributes auth.Attributes) (withdrawn, err error) {
	decision, reason, err := a.decide.Authorize(ctx, attributes)
	switch {
	case decision == auth.Allow:
		return nil, nil
	case err != nil && decision != auth.Deny:
		return nil, err
	case reason != "":
		reason = ": " + reason
	}
	refused := forbidden(attributes, "the right was withdrawn"+reason)
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: causeRightWithdrawn, Message: "the request was allowed until now",
	})
	return refused, nil
}

// causeRightWithdrawn is the cause in the Status that ends a request whose right was
// withdrawn while it was under way. Clients know it by this name.
const causeRightWithdrawn metav1.CauseType = "RightWithdrawn"

// Changes reports whether decisions change at all.
func (a *Authorizer) Changes() bool {
	stop := a.OnChange(func(string) {})
	if stop != nil {
		stop()
	}
	return stop != nil
}

// OnChange implements auth.ChangeNotifier.
func (a *Authorizer) OnChange(changed func(user string)) (stop func()) {
	return auth.OnChange(changed, a.decide)
}

// AuthorizeCreate is Authorize for a PUT or a patch that is going to create its
// object: who may do that must be allowed to create, too.
func (a *Authorizer) AuthorizeCreate(ctx context.Context, attributes auth.Attributes) error {
	attributes.Verb = "create"
	return a.Authorize(ctx, attributes)
}

// forbidden is the 403 that names the user and what the user may not do.
func forbidden(a auth.Attributes, reason string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, errors.New(a.Refusal(reason)))
}
