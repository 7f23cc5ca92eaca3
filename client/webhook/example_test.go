package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/webhook"
)

// A program that is nothing but webhooks. With controllers, these are further
// arguments of controller.Run.
func Example() {
	validate := webhook.Validate(func(_ context.Context, r *webhook.Request[*corev1.ConfigMap]) error {
		if r.Operation == admissionv1.Delete && r.Old.Labels["protected"] == "true" {
			return errors.New("the label protected forbids the deletion")
		}
		return nil
	})
	server, err := webhook.New(webhook.Options{
		CertFile: "/certs/tls.crt", KeyFile: "/certs/tls.key",
		Handlers: map[string]http.Handler{"/validate-configmap": validate},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := controller.Run(context.Background(), controller.RunOptions{}, server); err != nil {
		log.Fatal(err)
	}
}

// A test calls the handler with a review, as an API server does.
func ExampleMutate() {
	mutate := webhook.Mutate(func(_ context.Context, r *webhook.Request[*corev1.ConfigMap]) error {
		r.Object.Labels = map[string]string{"team": r.Admission.UserInfo.Username}
		return nil
	})
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",
		"userInfo":{"username":"jane"},"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}}}`
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	mutate.ServeHTTP(answer, request)
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), `"allowed":true`))
	// Output: 200 true
}
