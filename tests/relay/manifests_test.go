package relay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/kubeconfig"
	"github.com/levelwire/levelwire/client/subresource"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

const manifests = "../../docs/operators/relay"

// applyManifests creates what the files for operators have, as strictly as the server can.
func applyManifests(t *testing.T, c *client.Client, files ...string) {
	t.Helper()
	mapper := discovery.NewMapper(c, discovery.Options{})
	for _, name := range files {
		file, err := os.Open(filepath.Join(manifests, name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(file), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			to, err := discovery.Dynamic(t.Context(), mapper, o.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := to.Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
				t.Fatalf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// TestManifests are accepted as they are.
func TestManifests(t *testing.T) {
	applyManifests(t, levelwiretest.Start(t).Client(client.Options{}), "rbac.yaml", "relay.yaml")
}

// TestClientKubeconfig: the kubeconfig for pods leads to the Service of the manifests, and with
// it a program has the relay's certificate verified, and the token of its service account sent.
func TestClientKubeconfig(t *testing.T) {
	w := newWithRights(t)
	applyManifests(t, w.admin, "relay.yaml")
	relay := w.start(t)
	file, err := clientcmd.LoadFromFile(filepath.Join(manifests, "client.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, user := file.Clusters["relay"], file.AuthInfos["pod"]
	name, namespace, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(cluster.Server, "https://"), ".svc"), ".")
	if _, err := client.For[*corev1.Service](w.admin).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("%s leads to no Service: %v", cluster.Server, err)
	}

	// Here the relay has another address, and there is no pod.
	dir := t.TempDir()
	cluster.Server, user.TokenFile = relay.Config().Host, filepath.Join(dir, "token")
	authority, err := os.ReadFile(filepath.Join(filepath.Dir(relay.Kubeconfig()), "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{user.TokenFile: []byte(w.robot), filepath.Join(dir, "ca.crt"): authority} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	config, _, err := kubeconfig.Config(kubeconfig.Options{File: path})
	if err != nil {
		t.Fatal(err)
	}
	config.Dial = relay.Config().Dial
	program, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(program.CloseIdleConnections)
	testwait.Stable(t, "the pod lists through the relay", func() (error, bool) {
		err := w.answered(program, "/api/v1/namespaces/default/configmaps?resourceVersion=0")
		return err, err == nil
	})
}

// withRights is an upstream whose relay has the rights that the manifests give it, and what a
// relay does with them.
type withRights struct {
	t        *testing.T
	upstream *levelwiretest.Server
	admin    *client.Client
	token    string // of the relay
	robot    string // a token of a user
	made     int
}

func newWithRights(t *testing.T) *withRights {
	upstream := levelwiretest.Start(t)
	w := &withRights{t: t, upstream: upstream, admin: upstream.Client(client.Options{})}
	applyManifests(t, w.admin, "rbac.yaml")
	accounts := client.For[*corev1.ServiceAccount](w.admin).Namespace("kube-system")
	token, err := subresource.CreateToken(t.Context(), accounts, "levelwire-relay", authenticationv1.TokenRequestSpec{})
	if err != nil {
		t.Fatal(err)
	}
	w.token, w.robot = token.Token, serviceAccount(t, w.admin, "robot")
	bindings := client.For[*rbacv1.ClusterRoleBinding](w.admin)
	// Only these two let every user read discovery: the relay has to manage without them.
	for _, name := range []string{"system:discovery", "system:public-info-viewer"} {
		if err := bindings.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mustCreate(t, client.For[*rbacv1.ClusterRole](w.admin), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
	}})
	mustCreate(t, bindings, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "robot"}, {APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	})
	return w
}

// start starts a relay with the token of its service account.
func (w *withRights) start(t *testing.T) *levelwiretest.Server {
	config := w.upstream.Config()
	config = &rest.Config{Host: config.Host, BearerToken: w.token, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, CAFile: config.CAFile}, Dial: config.Dial}
	return startRelay(t, config, acceptUsersOf(w.upstream), func(c *server.Config) {
		c.Relay.AllowedTTL, c.Relay.DeniedTTL, c.Relay.TokenTTL = time.Millisecond, time.Millisecond, time.Millisecond
	})
}

// use does what needs each of the rights, and returns what did not work.
func (w *withRights) use(relay *levelwiretest.Server) error {
	jane := userAt(w.t, relay, w.upstream.UserConfig("jane", "readers"))
	robot := userAt(w.t, relay, &rest.Config{BearerToken: w.robot})
	for _, documents := range []string{"/version", "/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3", "/openapi/v2"} {
		if err := w.answered(jane, documents); err != nil {
			return err
		}
	}
	w.made++
	name := fmt.Sprint("made-", w.made)
	create(w.t, client.For[*corev1.ConfigMap](w.admin).Namespace("default"), name)
	for who, user := range map[string]*client.Client{"jane": jane, "robot": robot} {
		if err := w.answered(user, "/api/v1/namespaces/default/configmaps"); err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		if _, err := client.For[*corev1.ConfigMap](user).Namespace("default").Get(w.t.Context(), name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("%s: passed on: %w", who, err)
		}
	}
	return nil
}

// answered fails unless the relay answers from its memory, which the header Age says.
func (w *withRights) answered(user *client.Client, path string) error {
	response, err := user.Raw(w.t.Context(), client.RawRequest{Path: path})
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Age") == "" {
		return fmt.Errorf("%s: %s, Age %q", path, response.Status, response.Header.Get("Age"))
	}
	return nil
}

// TestRightsAreEnough: a relay with the rights of the manifests does all that relays do.
func TestRightsAreEnough(t *testing.T) {
	w := newWithRights(t)
	relay := w.start(t)
	for range 3 { // a list that waits long for the relay's stream is passed on
		testwait.Stable(t, "all is used", func() (any, bool) {
			err := w.use(relay)
			return err, err == nil
		})
	}
	if broken := metric(t, relay, "levelwire_relay_caches_broken_total"); broken != 0 {
		t.Errorf("%v caches broke", broken)
	}
	// Probes have no credentials.
	config := relay.Config()
	config.CertData, config.KeyData, config.CertFile, config.KeyFile, config.BearerToken = nil, nil, "", "", ""
	probe, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(probe.CloseIdleConnections)
	for _, path := range []string{"/readyz", "/livez"} {
		if code := status(t, probe, "GET", path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// TestUpstreamsAdministrator has the rights of the upstream through a relay that has fewer: the
// relay has an administrator, too, who acts with the relay's own.
func TestUpstreamsAdministrator(t *testing.T) {
	w := newWithRights(t)
	relay := w.start(t)
	for name, user := range map[string]struct {
		client *client.Client
		may    bool
	}{
		"the upstream's": {userAt(t, relay, w.upstream.Config()), true}, "the relay's": {userAt(t, relay, relay.Config()), false},
	} {
		maps := client.For[*corev1.ConfigMap](user.client).Namespace("default")
		// The upstream may not have the relay's rights in its memory yet.
		testwait.Stable(t, name+" administrator lists", func() (error, bool) {
			_, err := maps.List(t.Context(), metav1.ListOptions{})
			return err, err == nil
		})
		write := func() error {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "written"}}, metav1.CreateOptions{})
			return err
		}
		if user.may {
			testwait.Stable(t, name+" administrator writes", func() (error, bool) {
				err := write()
				return err, err == nil
			})
		} else if err := write(); !apierrors.IsForbidden(err) {
			t.Errorf("%s administrator writes: %v", name, err)
		}
	}
}

// right is one right of a role.
type right struct{ rule, verb, resource, url int }

// rightsOf returns all rights of a role, each by its places in the rules.
func rightsOf(rules []rbacv1.PolicyRule) (rights []right) {
	for i, rule := range rules {
		for v := range rule.Verbs {
			for r := range rule.Resources {
				rights = append(rights, right{i, v, r, -1})
			}
			for u := range rule.NonResourceURLs {
				rights = append(rights, right{i, v, -1, u})
			}
		}
	}
	return rights
}

// without returns the rules without one right.
func (r right) without(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, other := range rightsOf(rules) {
		if other == r {
			continue
		}
		from := rules[other.rule]
		rule := rbacv1.PolicyRule{Verbs: []string{from.Verbs[other.verb]}}
		if other.url >= 0 {
			rule.NonResourceURLs = []string{from.NonResourceURLs[other.url]}
		} else {
			rule.APIGroups, rule.Resources = from.APIGroups, []string{from.Resources[other.resource]}
		}
		left = append(left, rule)
	}
	return left
}

// review asks whether the relay has a right.
func (w *withRights) review(rule rbacv1.PolicyRule, r right) bool {
	spec := authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:kube-system:levelwire-relay", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	if r.url >= 0 {
		path := strings.Replace(rule.NonResourceURLs[r.url], "*", "v3", 1)
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: path, Verb: rule.Verbs[r.verb]}
	} else {
		resource, subresource, _ := strings.Cut(strings.ReplaceAll(rule.Resources[r.resource], "*", "any"), "/")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Group: strings.ReplaceAll(rule.APIGroups[0], "*", "any"), Resource: resource, Subresource: subresource, Verb: rule.Verbs[r.verb],
		}
	}
	answer, err := client.For[*authorizationv1.SubjectAccessReview](w.admin).Create(w.t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Status.Allowed
}

// TestNoRightIsTooMany: without any one of them, something does not work.
func TestNoRightIsTooMany(t *testing.T) {
	w := newWithRights(t)
	roles := client.For[*rbacv1.ClusterRole](w.admin)
	role, err := roles.Get(t.Context(), "levelwire-relay", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules := slices.Clone(role.Rules)
	for _, r := range rightsOf(rules) {
		rule := rules[r.rule]
		name := rule.Verbs[r.verb] + " "
		if r.url >= 0 {
			name += rule.NonResourceURLs[r.url]
		} else {
			name += rule.Resources[r.resource]
		}
		t.Run(strings.ReplaceAll(strings.ReplaceAll(name, "/", "|"), "*", "all"), func(t *testing.T) {
			role.Rules, role.ResourceVersion = r.without(rules), ""
			if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			testwait.Stable(t, "the right is withdrawn", func() (any, bool) { allowed := w.review(rule, r); return allowed, !allowed })
			relay := w.start(t)
			testwait.Stable(t, "something fails", func() (any, bool) { seen := w.use(relay); return seen, seen != nil })
		})
	}
}
