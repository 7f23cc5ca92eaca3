package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// reviewServer answers SubjectAccessReviews as an authorization webhook.
type reviewServer struct {
	*httptest.Server
	mu    sync.Mutex
	specs []authorizationv1.SubjectAccessReviewSpec // that it was asked
}

// newReviewServer denies everything about secrets, and allows the rest. Its file is a
// kubeconfig.
func newReviewServer(t *testing.T) (s *reviewServer, file string) {
	t.Helper()
	s = &reviewServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.specs = append(s.specs, review.Spec)
		s.mu.Unlock()
		review.Status.Denied = review.Spec.ResourceAttributes != nil && review.Spec.ResourceAttributes.Resource == "secrets"
		review.Status.Allowed = !review.Status.Denied
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	return s, mustWrite(t, "webhook.kubeconfig", []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"w","cluster":{"server":"`+s.URL+`"}}],"users":[{"name":"u"}],`+
		`"contexts":[{"name":"c","context":{"cluster":"w","user":"u"}}],"current-context":"c"}`))
}

// authorizersFile has authorizers, in the order in which they are asked.
func authorizersFile(authorizers ...string) []byte {
	return []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- " + strings.Join(authorizers, "\n- ") + "\n")
}

// authorizerRBAC and authorizerWebhook are entries of a file. The webhook is asked under a
// condition.
const authorizerRBAC = "{type: RBAC, name: rbac}"

func authorizerWebhook(kubeconfig, condition string) string {
	return fmt.Sprintf(`type: Webhook
  name: hook.example.com
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    cacheAuthorizedRequests: false
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions:
    - expression: %q`, kubeconfig, condition)
}

// authorizationConfig has a webhook that is asked under a condition, and RBAC.
func authorizationConfig(kubeconfig, condition string) []byte {
	return authorizersFile(authorizerWebhook(kubeconfig, condition), authorizerRBAC)
}

// TestAuthorizationConfig: the conditions say what the webhook is asked about; another
// file counts without a restart, for open watches, too; a wrong one changes nothing.
func TestAuthorizationConfig(t *testing.T) {
	hook, kubeconfig := newReviewServer(t)
	const mine = "request.user == 'jane' && has(request.resourceAttributes) && request.resourceAttributes.resource == 'configmaps'"
	path := mustWrite(t, "authorization.yaml", authorizationConfig(kubeconfig, mine))
	log := newLogRecorder()
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, Logger: log.logger(), AuthorizationConfigFile: path,
		TokenAuthFile: mustWrite(t, "tokens.csv", []byte("secret,jane,u1,\"dev\"\n")),
	})
	ctx := deadline(t)
	jane := s.as(t, func(c *rest.Config) { c.BearerToken = "secret" })
	watch, err := configMaps(jane).Watch(ctx, metav1.ListOptions{LabelSelector: "app=x"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if code := status(t, jane, "/api/v1/namespaces/default/secrets"); code != http.StatusForbidden {
		t.Errorf("what the webhook is not asked about: %d", code)
	}
	hook.mu.Lock()
	for _, spec := range hook.specs {
		if selector := spec.ResourceAttributes.LabelSelector; spec.User != "jane" || selector == nil || selector.Requirements[0].Key != "app" {
			t.Errorf("the webhook was asked %+v", spec)
		}
	}
	if len(hook.specs) == 0 {
		t.Error("the webhook was not asked")
	}
	hook.mu.Unlock()

	rewrite(t, path, authorizationConfig(kubeconfig, "request.usr == 'jane'"))
	log.await(t, "authorizers[0].matchConditions[0].expression")
	if err := configMapsList(ctx, jane); err != nil {
		t.Errorf("with a wrong file: %v", err)
	}
	rewrite(t, path, authorizationConfig(kubeconfig, "request.user == 'bob'"))
	for {
		_, err := watch.Next()
		if err == nil {
			continue
		}
		if !apierrors.HasStatusCause(err, "RightWithdrawn") {
			t.Errorf("the watch ends with %v", err)
		}
		break
	}
	if err := configMapsList(ctx, jane); !apierrors.IsForbidden(err) {
		t.Errorf("with another file: %v", err)
	}
	// A file counts a moment before it is counted.
	s.await(t, "/metrics", func(metrics string) bool {
		return !slices.ContainsFunc([]string{
			`automatic_reloads_total{status="success"} 1`, `automatic_reloads_total{status="failure"} 1`, `last_config_info{hash="sha256:`, `automatic_reload_last_timestamp_seconds{status="success"} 1`,
		}, func(want string) bool {
			return !strings.Contains(metrics, "\napiserver_authorization_config_controller_"+want)
		})
	})
}

func configMapsList(ctx context.Context, c *client.Client) error {
	_, err := configMaps(c).List(ctx, metav1.ListOptions{})
	return err
}

// TestWebhookFailurePolicy: a webhook that does not answer refuses what it is asked about,
// or leaves it to the other authorizers.
func TestWebhookFailurePolicy(t *testing.T) {
	hook, kubeconfig := newReviewServer(t)
	hook.Close()
	file := string(authorizationConfig(kubeconfig, "has(request.resourceAttributes)"))
	for policy, want := range map[string]bool{"Deny": false, "NoOpinion": true} {
		path := mustWrite(t, "authorization.yaml", []byte(strings.NewReplacer("failurePolicy: Deny", "failurePolicy: "+policy, "type: RBAC", "type: AlwaysAllow").Replace(file)))
		s := start(t, server.Config{
			DataDir: t.TempDir(), Storage: server.Memory, AuthorizationConfigFile: path,
			TokenAuthFile: mustWrite(t, "tokens.csv", []byte("secret,jane,u1,\"dev\"\n")),
		})
		if err := configMapsList(deadline(t), s.as(t, func(c *rest.Config) { c.BearerToken = "secret" })); (err == nil) != want {
			t.Errorf("%s: %v", policy, err)
		}
		s.stop(t)
	}
}
