package client

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A 401 says which server has refused which credentials, and never the credentials.
func TestUnauthorizedSaysWho(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
	}))
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, config := range map[string]*rest.Config{
		"requests without credentials":   {},
		"the token of the configuration": {BearerToken: "secret"},
		"the token in " + token:          {BearerTokenFile: token},
		`the password of user "alice"`:   {Username: "alice", Password: "secret"},
	} {
		config.Host = server.URL
		c, err := New(config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = For[*corev1.Pod](c).Namespace("default").Get(t.Context(), "p", metav1.GetOptions{})
		if !apierrors.IsUnauthorized(err) || !IsStatus(err) || !strings.HasPrefix(err.Error(), "Unauthorized: "+server.URL+" does not accept "+want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", want, err)
		}
		c.CloseIdleConnections()
	}
}
