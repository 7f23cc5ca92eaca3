package handlers

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// createReview answers POST of a review, which is forgotten.
func (h *Handlers) createReview(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if _, err := encoding.Negotiate(r, encoding.PlainOffer); err != nil {
		return err
	}
	x := &writer{w: w, r: r, q: q}
	if h.config.Registry != nil {
		x.registry = h.config.Registry.For(q.Resource)
	}
	if err := x.readMediaType(); err != nil {
		return err
	}
	if err := x.readBody(h.config.MaxBodyBytes); err != nil {
		return err
	}
	if err := x.readOptions(createOptions); err != nil {
		return err
	}
	review, err := x.decode()
	if err != nil {
		return err
	}
	if h.config.Registry != nil {
		if review, err = x.admitReview(r.Context(), review); err != nil {
			return err
		}
	}
	answer, err := h.review(r, q, review)
	if err != nil {
		return err
	}
	return encoding.WriteObject(w, r, http.StatusCreated, answer)
}

// admitReview asks the hooks, and notes who has sent the review, as kube-apiserver does.
func (x *writer) admitReview(ctx context.Context, review resource.Object) (resource.Object, error) {
	if err := x.registry.MatchNamespace(review, x.q.Namespace); err != nil {
		return nil, err
	}
	review, err := x.registry.AdmitUnstored(ctx, registry.Unstored{
		Kind: x.q.Resource.GroupVersionKind(), Namespace: x.q.Namespace, Name: review.GetName(), Object: review, Options: x.opts,
	})
	if err == nil {
		x.registry.FieldManager("").Update(ctx, nil, review, x.opts.FieldManager)
	}
	return review, err
}

// review returns the answer.
func (h *Handlers) review(r *http.Request, q *request.Info, review resource.Object) (resource.Object, error) {
	now := metav1.ObjectMeta{CreationTimestamp: metav1.Now()}
	switch v := review.(type) {
	case *authenticationv1.SelfSubjectReview:
		return &authenticationv1.SelfSubjectReview{ObjectMeta: now, Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authentication.UserInfo(q.User)}}, nil
	case *authenticationv1.TokenReview:
		return v, h.config.Authenticator.ReviewToken(r.Context(), v)
	}
	return h.config.Authorizer.Review(r.Context(), q.User, q.Namespace, review)
}
