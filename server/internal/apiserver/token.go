package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/discovery"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Document is a file that is served as it is to those with credentials.
type Document struct {
	ContentType string
	Body        []byte
}

// requestToken answers POST to serviceaccounts/token.
func (s *Server) requestToken(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if s.config.Issuer == nil {
		return status.Failure(http.StatusNotImplemented, "NotImplemented", "this server issues no service account tokens: use a client certificate or a static token")
	}
	x, err := s.newWriter(w, r, q, createOptions)
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
	if err := s.config.Issuer.IssueToken(r.Context(), q.Namespace, q.Name, tokenRequest); err != nil {
		return err
	}
	tokenRequest.Name, tokenRequest.Namespace = q.Name, q.Namespace
	tokenRequest.CreationTimestamp = metav1.Now()
	return encoding.WriteObject(w, r, http.StatusCreated, tokenRequest)
}

// serveDocument answers with a document that the server was configured with.
func serveDocument(d Document) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		encoding.WriteBody(w, r, http.StatusOK, d.ContentType, d.Body)
	}
}
