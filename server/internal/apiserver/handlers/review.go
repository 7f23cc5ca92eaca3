package handlers

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// createReview answers POST of a create-only kind: a review is answered and
// forgotten, a Binding is written to its pod.
func (h *Handlers) createReview(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if q.Resource.Kind == "Binding" {
		return h.bind(w, r, q)
	}
	x := &writer{w: w, r: r, q: q}
	if h.config.Registry != nil {
		x.registry = h.config.Registry.For(q.Resource)
	}
	if err := x.readOptions(createOptions); err != nil {
		return err
	}
	var err error
	if x.mediaType, err = encoding.BodyMediaType(r); err != nil {
		return err
	}
	if x.body, err = encoding.ReadBody(w, r, h.config.MaxBodyBytes); err != nil {
		return err
	}
	review, err := x.decode()
	if err != nil {
		return err
	}
	if h.config.Registry != nil {
		admitted := registry.Unstored{Kind: q.Resource.GroupVersionKind(), Namespace: q.Namespace, Name: review.GetName(), Object: review, Options: x.opts}
		if review, err = h.config.Registry.For(q.Resource).AdmitUnstored(r.Context(), admitted); err != nil {
			return err
		}
	}
	if err := h.review(r, q, review); err != nil {
		return err
	}
	return encoding.WriteObject(w, r, http.StatusCreated, review)
}

// review fills in the answer.
func (h *Handlers) review(r *http.Request, q *request.Info, review resource.Object) error {
	switch v := review.(type) {
	case *authenticationv1.SelfSubjectReview:
		v.Status.UserInfo = authentication.UserInfo(q.User)
	case *authenticationv1beta1.SelfSubjectReview:
		v.Status.UserInfo = authentication.UserInfo(q.User)
	case *authenticationv1.TokenReview:
		return h.config.Authenticator.ReviewToken(r.Context(), v)
	}
	return h.config.Authorizer.Review(r.Context(), q.User, q.Namespace, q.Resource.GroupVersionKind().GroupKind(), review)
}
