package controllerruntime

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
)

// TestUsersAndMetricsFilters: a user of envtest's AddUser may do what roles say, and the
// filters of the metrics server ask Levelwire who asks, and what it may.
func TestUsersAndMetricsFilters(t *testing.T) {
	environment, _ := newEnvironment(t)
	admin, err := client.New(environment.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	create := func(object client.Object) {
		t.Helper()
		if err := admin.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}

	added, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"dev"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	added.Config().Host = environment.Config.Host // it may be a relay's
	jane, err := client.New(added.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error { return jane.List(ctx, &corev1.PodList{}, client.InNamespace(namespace)) }
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("a user without roles lists pods: %v", err)
	}
	create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "dev"}},
	})
	if err := list(); err != nil {
		t.Errorf("a user of a group with the role view: %v", err)
	}

	create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}})
	create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "scraper", Namespace: namespace}},
	})
	metrics := metricsServer(t, environment.Config)
	for account, want := range map[string]int{"": http.StatusUnauthorized, "stranger": http.StatusForbidden, "scraper": http.StatusOK} {
		token := ""
		if account != "" {
			object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace}}
			create(object)
			request := &authenticationv1.TokenRequest{}
			if err := admin.SubResource("token").Create(ctx, object, request); err != nil {
				t.Fatal(err)
			}
			token = request.Status.Token
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, metrics.URL+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := metrics.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if response.StatusCode != want {
			t.Errorf("the metrics for %q: %s, want %d", account, response.Status, want)
		}
	}
}

// metricsServer serves a page behind the filters that a manager's metrics server has.
func metricsServer(t *testing.T, config *rest.Config) *httptest.Server {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(config, c)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	return s
}
