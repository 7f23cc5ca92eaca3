package levelwiretest_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// A token that was asked for is a name that the server knows.
func TestTokenIsAnIdentity(t *testing.T) {
	s := levelwiretest.Start(t)
	request := &authenticationv1.TokenRequest{}
	err := client.For[*corev1.ServiceAccount](s.Client(client.Options{})).Namespace("default").
		SubResource("token").Create(t.Context(), "default", request, metav1.CreateOptions{})
	if err != nil || request.Status.Token == "" {
		t.Fatalf("token request: %v, status %v", err, request.Status.ExpirationTimestamp)
	}
	config := rest.AnonymousClientConfig(s.Config())
	config.BearerToken = request.Status.Token
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	const want = "system:serviceaccount:default:default"
	now, err := client.For[*authenticationv1.SelfSubjectReview](c).Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || now.Status.UserInfo.Username != want {
		t.Errorf("%v, %v; want %s", now, err, want)
	}
}
