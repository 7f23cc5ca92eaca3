package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Document is a file that is served as it is to those with credentials.
type Document struct {
	ContentType string
	Body        []byte
}

var tokenRequestKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// requestToken answers POST to serviceaccounts/token.
func (s *Server) requestToken(w http.ResponseWriter, r *http.Request, q *request) error {
	if s.config.Issuer == nil {
		return status.Failure(http.StatusNotImplemented, "NotImplemented", "this server issues no service account tokens: use a client certificate or a static token")
	}
	x, err := s.newWriter(w, r, q, createOptions)
	if err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{}
	if err := x.decodeAs(tokenRequestKind, request); err != nil {
		return err
	}
	switch {
	case request.Name != "" && request.Name != q.name:
		return status.BadRequest("metadata.name: %q must be the name of the service account, %q", request.Name, q.name)
	case request.Namespace != "" && request.Namespace != q.namespace:
		return status.BadRequest("metadata.namespace: %q must be the namespace of the service account, %q", request.Namespace, q.namespace)
	}
	if err := s.config.Issuer.IssueToken(r.Context(), q.namespace, q.name, request); err != nil {
		return err
	}
	request.Name, request.Namespace = q.name, q.namespace
	request.CreationTimestamp = metav1.Now()
	return writeObject(w, r, http.StatusCreated, request)
}

// serveDocument answers with a document that the server was configured with.
func serveDocument(d Document) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		writeBody(w, r, http.StatusOK, d.ContentType, d.Body)
	}
}
