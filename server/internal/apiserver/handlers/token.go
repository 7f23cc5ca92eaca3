package handlers

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/apiserver/discovery"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/status"
)

// requestToken answers POST to serviceaccounts/token.
func (h *Handlers) requestToken(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if h.config.Issuer == nil {
		return status.Failure(http.StatusNotImplemented, "NotImplemented", "this server issues no service account tokens: use a client certificate or a static token")
	}
	x, err := h.newCreator(w, r, q)
	if err != nil {
		return err
	}
	tokenRequest := &authenticationv1.TokenRequest{}
	if err := x.decodeAs(discovery.TokenRequestKind, tokenRequest); err != nil {
		return err
	}
	if err := matchPath(tokenRequest, q); err != nil {
		return err
	}
	admitted, err := x.registry.AdmitUnstored(r.Context(), registry.Unstored{
		Subresource: q.Subresource, Kind: discovery.TokenRequestKind, Namespace: q.Namespace, Name: q.Name, Object: tokenRequest, Options: x.opts,
	})
	if err != nil {
		return err
	}
	tokenRequest, ok := admitted.(*authenticationv1.TokenRequest)
	if !ok {
		return status.BadRequest("admission made a %T of the token request", admitted)
	}
	if err := h.config.Issuer.IssueToken(r.Context(), q.Namespace, q.Name, tokenRequest); err != nil {
		return err
	}
	tokenRequest.CreationTimestamp = metav1.Now()
	return encoding.WriteObject(w, r, http.StatusCreated, tokenRequest)
}

// matchPath refuses a request for a token that names another account than its path does.
func matchPath(tokenRequest *authenticationv1.TokenRequest, q *request.Info) error {
	refuse := func(child, value, message string) error {
		return apierrors.NewInvalid(discovery.TokenRequestKind.GroupKind(), q.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", child), value, message)})
	}
	switch {
	case tokenRequest.Name != "" && tokenRequest.Name != q.Name:
		return refuse("name", tokenRequest.Name, "must match the service account name if specified")
	case tokenRequest.Namespace != "" && tokenRequest.Namespace != q.Namespace:
		return refuse("namespace", tokenRequest.Namespace, "must match the service account namespace if specified")
	}
	return nil
}
