package relay

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/subresource"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// tokenFile has the token "secret" of an administrator.
func tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(path, []byte("secret,admin,1,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// served is a server as its clients have it.
type served interface {
	Config() *rest.Config // of an administrator
	UserConfig(name string, groups ...string) *rest.Config
	Client(opts client.Options) *client.Client // of an administrator
}

// userAt returns a user of the upstream as a client of another server: with the same
// credentials.
func userAt(t *testing.T, s served, user *rest.Config) *client.Client {
	t.Helper()
	config := s.Config()
	config.CertData, config.KeyData, config.CertFile, config.KeyFile = user.CertData, user.KeyData, user.CertFile, user.KeyFile
	config.BearerToken = user.BearerToken
	config.Impersonate = user.Impersonate
	c, err := client.New(config, client.Options{Retry: client.RetryOptions{Max: -1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// upstreamWithRelay starts a server in a directory of its own, and a relay that accepts its
// client certificates.
func upstreamWithRelay(t *testing.T, change ...func(*server.Config)) (upstream, relay *levelwiretest.Server) {
	t.Helper()
	upstream = levelwiretest.Start(t)
	relay = startRelay(t, upstream.Config(), append([]func(*server.Config){acceptUsersOf(upstream), func(c *server.Config) {
		c.Relay.AllowedTTL, c.Relay.DeniedTTL, c.Relay.TokenTTL = time.Second, time.Millisecond, time.Second
	}}, change...)...)
	return upstream, relay
}

// acceptUsersOf makes a server accept the client certificates of another.
func acceptUsersOf(other *levelwiretest.Server) func(*server.Config) {
	return func(c *server.Config) {
		c.ClientCAFile = filepath.Join(filepath.Dir(other.Kubeconfig()), "pki", "ca.crt")
	}
}

func status(t *testing.T, c *client.Client, method, path string) int {
	t.Helper()
	response, err := c.Raw(t.Context(), client.RawRequest{Method: method, Path: path})
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestRelayShowsWhatTheUpstreamShows, to each user, kind by kind and verb by verb.
func TestRelayShowsWhatTheUpstreamShows(t *testing.T) {
	upstream, relay := upstreamWithRelay(t)
	admin := upstream.Client(client.Options{})
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch", "delete"}},
	}
	mustCreate(t, client.For[*rbacv1.Role](admin).Namespace("default"), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "some"}, Rules: rules})
	mustCreate(t, client.For[*rbacv1.RoleBinding](admin).Namespace("default"), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "some"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "some"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}, {APIGroup: rbacv1.GroupName, Kind: "Group", Name: "dev"}},
	})
	robot := serviceAccount(t, admin, "robot")
	users := map[string]*rest.Config{
		"jane": upstream.UserConfig("jane"), "dev": upstream.UserConfig("joe", "dev"), "nobody": upstream.UserConfig("nobody"), "admin": upstream.Config(),
		"robot": {BearerToken: robot}, "wrong token": {BearerToken: "wrong"},
		"jane as joe":  impersonating(upstream.UserConfig("jane"), "joe"),
		"admin as dev": impersonating(upstream.Config(), "someone", "dev"),
	}
	for name, user := range users {
		direct, through := userAt(t, upstream, user), userAt(t, relay, user)
		for _, collection := range []string{
			"/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets", "/apis/apps/v1/namespaces/default/deployments",
			"/api/v1/namespaces/default/pods", "/api/v1/configmaps", "/api/v1/namespaces/kube-system/configmaps", "/api/v1/nodes", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
			"/apis/none.example/v1/things",
		} {
			for _, r := range []struct{ method, path string }{
				{"GET", collection}, {"GET", collection + "?resourceVersion=0"}, {"GET", collection + "?limit=1"},
				{"GET", collection + "?watch=true&timeoutSeconds=1&resourceVersion=0"}, //passes: the watch ends by it
				{"GET", collection + "/kube-root-ca.crt"}, {"GET", collection + "/kube-root-ca.crt?resourceVersion=0"},
				{"DELETE", collection + "/no-such-object"}, {"POST", collection}, {"PATCH", collection + "/no-such-object"},
			} {
				want, got := status(t, direct, r.method, r.path), status(t, through, r.method, r.path)
				if want != got {
					t.Errorf("%s: %s %s: %d, the upstream says %d", name, r.method, r.path, got, want)
				}
			}
		}
		// What is long is passed on, and ends when a right is withdrawn.
		for _, r := range []struct{ method, path string }{
			{"GET", "/api/v1/namespaces/default/pods/none/exec"}, {"POST", "/api/v1/namespaces/default/pods/none/attach"},
			{"GET", "/api/v1/namespaces/default/pods/none/log?follow=true"}, {"GET", "/api/v1/nodes/none/proxy/"},
		} {
			if want, got := status(t, direct, r.method, r.path), status(t, through, r.method, r.path); want != got {
				t.Errorf("%s: %s %s: %d, the upstream says %d", name, r.method, r.path, got, want)
			}
		}
		for _, path := range []string{"/api", "/apis", "/openapi/v3", "/version", "/apis/apps/v1"} {
			if want, got := status(t, direct, "GET", path), status(t, through, "GET", path); want != got {
				t.Errorf("%s: %s: %d, the upstream says %d", name, path, got, want)
			}
		}
	}
}

// TestAnonymousRequests have through a relay the rights that they have at the upstream, if the relay takes them at all.
func TestAnonymousRequests(t *testing.T) {
	allowed := true
	takesThem := func(c *server.Config) { c.Authentication.Anonymous = &allowed }
	upstream := levelwiretest.Start(t, takesThem)
	mustCreate(t, client.For[*rbacv1.RoleBinding](upstream.Client(client.Options{})).Namespace("default"), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:unauthenticated"}},
	})
	direct := userAt(t, upstream, &rest.Config{})
	through, refused := userAt(t, startRelay(t, upstream.Config(), takesThem), &rest.Config{}), userAt(t, startRelay(t, upstream.Config()), &rest.Config{})
	for _, r := range []struct{ method, path string }{
		{"GET", "/api/v1/namespaces/default/configmaps"}, {"GET", "/api/v1/namespaces/default/configmaps?resourceVersion=0"},
		{"GET", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"}, {"GET", "/api/v1/namespaces/default/secrets"},
		{"GET", "/api/v1/namespaces/default/secrets?resourceVersion=0"}, {"GET", "/api/v1/secrets"}, {"GET", "/apis"}, {"GET", "/openapi/v2"},
		{"POST", "/api/v1/namespaces/default/configmaps"}, {"DELETE", "/api/v1/namespaces/default/configmaps/none"},
	} {
		if want, got := status(t, direct, r.method, r.path), status(t, through, r.method, r.path); got != want {
			t.Errorf("%s %s: %d, the upstream says %d", r.method, r.path, got, want)
		}
		if got := status(t, refused, r.method, r.path); got != http.StatusUnauthorized {
			t.Errorf("%s %s at a relay that takes no such requests: %d", r.method, r.path, got)
		}
	}
}

// TestNamesThatHeadersLose: the relay's own credentials would act where the name of a user is
// empty, or is lost on the way, and a group that loses its space may be a mighty one.
func TestNamesThatHeadersLose(t *testing.T) {
	upstream, relay := upstreamWithRelay(t)
	for _, user := range []*rest.Config{
		upstream.UserConfig(" "), upstream.UserConfig(" admin"), upstream.UserConfig("jane\t"), upstream.UserConfig("jane", " system:masters"), upstream.UserConfig("ja\nne"),
	} {
		through := userAt(t, relay, user)
		for _, path := range []string{"/api/v1/namespaces/kube-system/configmaps", "/api/v1/namespaces/kube-system/configmaps/none", "/logs"} {
			if code := status(t, through, "GET", path); code < 400 || code == http.StatusNotFound {
				t.Errorf("%s: %d", path, code)
			}
		}
	}
}

// TestWithdrawnRights count after the bound at the latest.
func TestWithdrawnRights(t *testing.T) {
	upstream, relay := upstreamWithRelay(t)
	admin := upstream.Client(client.Options{})
	jane := userAt(t, relay, upstream.UserConfig("jane"))
	const path = "/api/v1/namespaces/default/configmaps?resourceVersion=0"
	if code := status(t, jane, "GET", path); code != http.StatusForbidden {
		t.Fatalf("%d at first", code)
	}
	bindings := client.For[*rbacv1.ClusterRoleBinding](admin)
	mustCreate(t, bindings, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "jane"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}},
	})
	testwait.Stable(t, "jane may list", func() (any, bool) { seen := status(t, jane, "GET", path); return seen, seen == http.StatusOK })
	if err := bindings.Delete(t.Context(), "jane", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testwait.Stable(t, "jane may not list", func() (any, bool) { seen := status(t, jane, "GET", path); return seen, seen == http.StatusForbidden })
}

// TestWithdrawnRightEndsWatches that the relay serves, although it remembers for long what the upstream
// has said of their users; and new requests follow, in both directions.
func TestWithdrawnRightEndsWatches(t *testing.T) {
	upstream, relay := upstreamWithRelay(t, func(c *server.Config) {
		c.Relay.AllowedTTL, c.Relay.DeniedTTL = 10*time.Minute, 10*time.Minute
	})
	admin := upstream.Client(client.Options{})
	direct := client.For[*corev1.ConfigMap](admin).Namespace("default")
	through := client.For[*corev1.ConfigMap](userAt(t, relay, upstream.UserConfig("jane"))).Namespace("default")
	bindings := client.For[*rbacv1.RoleBinding](admin).Namespace("default")
	for i := range 2 {
		mustCreate(t, bindings, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "jane"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}},
		})
		var list *client.List[*corev1.ConfigMap]
		testwait.Stable(t, "jane may list", func() (any, bool) {
			var err error
			list, err = through.List(t.Context(), metav1.ListOptions{})
			return err, err == nil
		})
		passed := metric(t, relay, "levelwire_relay_passed_on_total")
		w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		create(t, direct, fmt.Sprint("made-", i))
		if event, err := w.Next(); err != nil || event.Object.Name != fmt.Sprint("made-", i) {
			t.Fatalf("%v, %v", event, err)
		}
		if now := metric(t, relay, "levelwire_relay_passed_on_total"); now != passed {
			t.Fatalf("%v requests were passed on: the watch is the upstream's", now-passed)
		}
		if err := bindings.Delete(t.Context(), "jane", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if event, err := w.Next(); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, "RightWithdrawn") {
			t.Fatalf("%v, %v, want an error that says that the right was withdrawn", event, err)
		}
		if _, err := through.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("a list after that: %v", err)
		}
	}
}

// TestLostUpstreamOpensNoDoors: without an answer nothing is shown but to those who were
// allowed moments ago.
func TestLostUpstreamOpensNoDoors(t *testing.T) {
	upstream := levelwiretest.Start(t)
	config, proxy := behindProxy(t, upstream)
	relay := startRelay(t, config, acceptUsersOf(upstream), func(c *server.Config) {
		c.Relay.AllowedTTL, c.Relay.DeniedTTL, c.Relay.TokenTTL = 100*time.Millisecond, time.Millisecond, 100*time.Millisecond
	})
	admin := upstream.Client(client.Options{})
	mustCreate(t, client.For[*rbacv1.ClusterRoleBinding](admin), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}, {Kind: "ServiceAccount", Namespace: "default", Name: "robot"}},
	})
	jane, robot := userAt(t, relay, upstream.UserConfig("jane")), userAt(t, relay, &rest.Config{BearerToken: serviceAccount(t, admin, "robot")})
	nobody := userAt(t, relay, upstream.UserConfig("nobody"))
	const path = "/api/v1/namespaces/default/configmaps?resourceVersion=0"
	testwait.Stable(t, "jane and robot may list", func() (any, bool) {
		ofJane, ofRobot := status(t, jane, "GET", path), status(t, robot, "GET", path)
		return []int{ofJane, ofRobot}, ofJane == http.StatusOK && ofRobot == http.StatusOK
	})
	proxy.Refuse(true)
	proxy.Cut()
	testwait.Stable(t, "their permissions have run out", func() (any, bool) {
		ofJane, ofRobot := status(t, jane, "GET", path), status(t, robot, "GET", path)
		return []int{ofJane, ofRobot}, ofJane >= 400 && ofRobot >= 400
	})
	// It is not known whether they may, which is no refusal: their open watches go on.
	for name, user := range map[string]*client.Client{"jane": jane, "nobody": nobody} {
		if code := status(t, user, "GET", path); code != http.StatusInternalServerError {
			t.Errorf("%s gets %d", name, code)
		}
	}
	if code, _ := get(t, relay, path); code != http.StatusOK {
		t.Errorf("the relay's own user gets %d", code)
	}
}

// serviceAccount makes a service account and returns a token of it.
func serviceAccount(t *testing.T, admin *client.Client, name string) string {
	t.Helper()
	mustCreate(t, client.For[*corev1.ServiceAccount](admin).Namespace("default"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}})
	token, err := subresource.CreateToken(t.Context(), client.For[*corev1.ServiceAccount](admin).Namespace("default"), name, authenticationv1.TokenRequestSpec{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Token
}

func impersonating(config *rest.Config, user string, groups ...string) *rest.Config {
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

func mustCreate[T client.Object](t *testing.T, to client.Resource[T], object T) {
	t.Helper()
	if _, err := to.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(fmt.Errorf("%T %s: %w", object, object.GetName(), err))
	}
}
