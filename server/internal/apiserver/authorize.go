package apiserver

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

// authorize refuses what the user may not do with objects.
func (s *Server) authorize(r *http.Request, q *request) error {
	return s.require(r.Context(), auth.Attributes{
		User: q.user, Verb: q.verb, Path: r.URL.Path,
		Group: q.resource.Group, Version: q.resource.Version, Resource: q.resource.Plural,
		Subresource: q.subresource, Namespace: q.namespace, Name: q.name,
	})
}

// authorizePath refuses what the user may not read that is not an object.
func (s *Server) authorizePath(r *http.Request, user auth.User) error {
	return s.require(r.Context(), auth.Attributes{User: user, Verb: strings.ToLower(r.Method), Path: r.URL.Path})
}

// require is nil if the authorizer allows it, and otherwise what the client is
// told.
func (s *Server) require(ctx context.Context, a auth.Attributes) error {
	decision, reason, err := s.config.Authorizer.Authorize(ctx, a)
	switch {
	case decision == auth.Allow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("whether this is allowed could not be found out: %w", err))
	}
	return forbidden(a, reason)
}

// forbidden says who may not do what, in the words of Kubernetes.
func forbidden(a auth.Attributes, reason string) error {
	var why strings.Builder
	fmt.Fprintf(&why, "User %q cannot %s ", a.User.Name, a.Verb)
	if !a.OnResource() {
		fmt.Fprintf(&why, "path %q", a.Path)
	} else {
		res := a.Resource
		if a.Subresource != "" {
			res += "/" + a.Subresource
		}
		fmt.Fprintf(&why, "resource %q in API group %q ", res, a.Group)
		if a.Namespace != "" {
			fmt.Fprintf(&why, "in the namespace %q", a.Namespace)
		} else {
			why.WriteString("at the cluster scope")
		}
	}
	if reason != "" {
		why.WriteString(": " + reason)
	}
	if !a.OnResource() {
		return status.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: "+why.String())
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, errors.New(why.String()))
}
