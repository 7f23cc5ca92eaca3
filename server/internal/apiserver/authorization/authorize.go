package authorization

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

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
}

// New returns an Authorizer. If decide is an auth.RuleLister, it answers
// reviews of rules, too.
func New(decide auth.Authorizer) *Authorizer { return &Authorizer{decide: decide} }

// Authorize returns nil if the request is allowed, and otherwise the 403 for
// the client.
func (a *Authorizer) Authorize(ctx context.Context, attributes auth.Attributes) error {
	decision, reason, err := a.decide.Authorize(ctx, attributes)
	switch {
	case decision == auth.Allow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("whether this is allowed could not be found out: %w", err))
	}
	return forbidden(attributes, reason)
}

// forbidden is the 403 that names the user and what the user may not do, in
// the words of Kubernetes.
func forbidden(a auth.Attributes, reason string) error {
	var message strings.Builder
	fmt.Fprintf(&message, "User %q cannot %s ", a.User.Name, a.Verb)
	if !a.OnResource() {
		fmt.Fprintf(&message, "path %q", a.Path)
	} else {
		res := a.Resource
		if a.Subresource != "" {
			res += "/" + a.Subresource
		}
		fmt.Fprintf(&message, "resource %q in API group %q ", res, a.Group)
		if a.Namespace != "" {
			fmt.Fprintf(&message, "in the namespace %q", a.Namespace)
		} else {
			message.WriteString("at the cluster scope")
		}
	}
	if reason != "" {
		message.WriteString(": " + reason)
	}
	if !a.OnResource() {
		return status.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: "+message.String())
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, errors.New(message.String()))
}
