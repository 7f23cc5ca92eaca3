package relay

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/wait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// matrixUser is a user of both servers.
type matrixUser struct {
	name            string
	direct, through *client.Client
}

// TestRelayAnswersAsTheUpstream: every kind that the server has, built-in and custom, in each
// version, is asked for with every verb by users with different rights, at the upstream and
// through a relay. Code, reason, message and warnings are the same, and so is each object that
// a read shows. Writes are dry runs, so that both servers answer from the same state. In a short test
// all users but the administrator ask for a quarter of that, each for another one.
func TestRelayAnswersAsTheUpstream(t *testing.T) {
	upstream := levelwiretest.Start(t)
	relay := startRelay(t, upstream.Config(), acceptUsersOf(upstream), func(c *server.Config) {
		// Rights do not change during the test.
		c.Relay.AllowedTTL, c.Relay.DeniedTTL, c.Relay.TokenTTL = time.Hour, time.Hour, time.Hour
	})
	admin := upstream.Client(client.Options{})
	levelwiretest.ApplyFiles(t, admin, "testdata/every-kind.yaml")
	awaitStatuses(t, admin)
	kinds := servedKinds(t, admin)
	askAll(t, relay, kinds, matrixUsers(t, upstream, relay, kinds), func(matrixRequest) bool { return false })
}

// askAll has each user ask for each kind at the upstream and through a relay that has no caches yet, but for requests whose answers are
// declared to differ.
func askAll(t *testing.T, relay served, kinds []*matrixKind, users []matrixUser, declared func(matrixRequest) bool) {
	var requests []matrixRequest
	cached := 0
	for _, k := range kinds {
		requests = append(requests, k.requests()...)
		if slices.Contains(k.Verbs, "list") && slices.Contains(k.Verbs, "watch") { // what cannot be watched is passed on
			cached++
		}
	}
	requests = slices.DeleteFunc(append(requests, otherRequests()...), declared)
	var mu sync.Mutex
	codes := map[int]int{}
	t.Run("users", func(t *testing.T) {
		for n, user := range users {
			asksAll := !testing.Short() || user.name == "admin"
			t.Run(user.name, func(t *testing.T) {
				t.Parallel()
				seen := map[int]int{}
				for i, q := range requests {
					if !asksAll && (n+i)%4 > 0 {
						continue
					}
					seen[user.ask(t, q)]++
				}
				mu.Lock()
				defer mu.Unlock()
				for code, n := range seen {
					codes[code] += n
				}
			})
		}
	})
	few := 1000
	if testing.Short() {
		few /= 2
	}
	t.Logf("%d users, %d kinds, %d requests each; answers by code: %v", len(users), len(kinds), len(requests), codes)
	if cached < 60 || codes[http.StatusOK] < few || codes[http.StatusForbidden] < few {
		t.Errorf("%d kinds can be cached, answers %v: that is too few to say anything", cached, codes)
	}
	if made := metric(t, relay, "levelwire_relay_caches_made_total"); int(made) != cached {
		t.Errorf("the relay has made %v caches for %d kinds that can be cached", made, cached)
	}
	if passed := metric(t, relay, "levelwire_relay_older_watches_total"); passed != 0 {
		t.Errorf("%v watches were passed on", passed)
	}
}

// awaitStatuses waits until the upstream has written what it writes by itself about the
// objects of the test: nothing changes after that.
func awaitStatuses(t *testing.T, admin *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := wait.Until(ctx, client.For[*admissionv1.ValidatingAdmissionPolicy](admin), "one", func(p *admissionv1.ValidatingAdmissionPolicy) bool {
		return p.Status.ObservedGeneration == p.Generation
	}); err != nil {
		t.Fatal(err)
	}
}

// matrixUsers makes users and their rights.
func matrixUsers(t *testing.T, upstream, relay served, kinds []*matrixKind) []matrixUser {
	t.Helper()
	admin := upstream.Client(client.Options{})
	rule := func(names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: verbs, ResourceNames: names}
	}
	names := map[string]bool{}
	for _, k := range kinds {
		names[k.name] = true
	}
	for role, rules := range map[string][]rbacv1.PolicyRule{
		"reader": {rule(nil, "get", "list", "watch")},
		"lister": {rule(nil, "list")}, "watcher": {rule(nil, "watch")},
		"by-name": {rule(slices.Sorted(maps.Keys(names)), "*")},
		"writer":  {rule(nil, "create", "update", "patch", "delete", "deletecollection"), {NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}},
	} {
		mustCreate(t, client.For[*rbacv1.ClusterRole](admin), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules})
		ref, subjects := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: role}}
		meta := metav1.ObjectMeta{Name: role}
		if role == "reader" { // of one namespace
			mustCreate(t, client.For[*rbacv1.RoleBinding](admin).Namespace("a"), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
			continue
		}
		mustCreate(t, client.For[*rbacv1.ClusterRoleBinding](admin), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
	}
	var users []matrixUser
	add := func(name string, config *rest.Config) {
		users = append(users, matrixUser{name, userAt(t, upstream, config), userAt(t, relay, config)})
	}
	for _, group := range []string{"reader", "lister", "watcher", "by-name", "writer"} {
		add(group, upstream.UserConfig("jane", group))
	}
	add("stranger", upstream.UserConfig("jane"))
	add("admin", upstream.UserConfig("joe", "system:masters"))
	return users
}

// ask makes a request at both servers, and compares the answers. It returns the code.
func (u *matrixUser) ask(t *testing.T, q matrixRequest) int {
	t.Helper()
	want, err := q.send(t.Context(), u.direct)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	got, err := q.send(t.Context(), u.through)
	if err != nil {
		t.Fatalf("%s, through the relay: %v", q, err)
	}
	if got.summary() != want.summary() {
		t.Errorf("%s:\n got %s\nwant %s", q, got.summary(), want.summary())
	} else if !slices.Equal(got.objects, want.objects) {
		t.Errorf("%s: %s\n got %s\nwant %s", q, want.summary(), strings.Join(got.objects, "\n     "), strings.Join(want.objects, "\n     "))
	}
	return want.code
}

// answer is what a server says to a request.
type answer struct {
	code      int
	mediaType string
	warnings  []string
	status    metav1.Status // of an error
	objects   []string      // of a read, and of a review
}

// summary is all but the objects.
func (a *answer) summary() string {
	return fmt.Sprintf("%d %s %q %q %q", a.code, a.mediaType, a.status.Reason, a.status.Message, a.warnings)
}
