package handlers

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	x, err := h.newWriter(w, r, q, createOptions)
	if err != nil {
		return err
	}
	tokenRequest := &authenticationv1.TokenRequest{}
	if err := x.decodeAs(discovery.TokenRequestKind, tokenRequest); err != nil {
		return err
	}
	switch {
	case tokenRequest.Name != "" && tokenRequest.Name != q.Name:
		return status.BadRequest("metadata.name: %q must be the name of the service account, %q", tokenRequest.Name, q.Name)
	case tokenRequest.Namespace != "" && tokenRequest.Namespace != q.Namespace:
		return status.BadRequest("metadata.namespace: %q must be the namespace of the service account, %q", tokenRequest.Namespace, q.Namespace)
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
	tokenRequest.Name, tokenRequest.Namespace = q.Name, q.Namespace
	tokenRequest.CreationTimestamp = metav1.Now()
	return encoding.WriteObject(w, r, http.StatusCreated, tokenRequest)
}
