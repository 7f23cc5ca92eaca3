package authorization

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// grants allows what it lists: "verb group/resource/subresource namespace/name", as
// written from the documentation of user impersonation.
type grants struct {
	list    []string
	fails   string // the verb for which there is no decision
	decided atomic.Int64
	extra   map[string][]string // of the last user that was asked about
}

func (g *grants) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	g.decided.Add(1)
	g.extra = a.User.Extra
	if g.fails != "" && a.Verb == g.fails {
		return auth.NoOpinion, "", errors.New("no answer")
	}
	asked := fmt.Sprintf("%s %s/%s %s/%s", a.Verb, a.Group, a.Resource, a.Namespace, a.Name)
	if a.Subresource != "" {
		asked = fmt.Sprintf("%s %s/%s/%s %s/%s", a.Verb, a.Group, a.Resource, a.Subresource, a.Namespace, a.Name)
	}
	if !a.OnResource() {
		asked = a.Verb + " " + a.Path
	}
	if slices.Contains(g.list, asked) {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, "", nil
}

const (
	authn    = "authentication.k8s.io/"
	listPods = ":list /pods default/"
)

func impersonate(g *grants, by auth.User, request auth.Attributes, headers ...string) (Impersonation, error) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add("Impersonate-"+name, value)
	}
	request.User = by
	return New(g).Impersonate(r, by, func() auth.Attributes { return request })
}

// TestConstrainedImpersonation has the documentation's examples, and what they say is not
// allowed.
func TestConstrainedImpersonation(t *testing.T) {
	controller := auth.User{Name: "system:serviceaccount:default:c", Extra: map[string][]string{extraNodeName: {"mynode"}, "x": {"y"}}}
	list := auth.Attributes{Verb: "list", Version: "v1", Resource: "pods", Namespace: "default"}
	jane := []string{"impersonate:user-info " + authn + "users /jane", "impersonate-on:user-info" + listPods}
	account := []string{"impersonate:serviceaccount " + authn + "serviceaccounts default/app-sa", "impersonate-on:serviceaccount" + listPods}
	arbitrary := []string{"impersonate:arbitrary-node " + authn + "nodes /mynode", "impersonate-on:arbitrary-node" + listPods}
	associated := []string{"impersonate:associated-node " + authn + "nodes /*", "impersonate-on:associated-node" + listPods}
	groups := []string{"Group: a", "Group: b", "Group: c", "Group: d"}
	deletes := list
	deletes.Verb = "delete"
	for name, test := range map[string]struct {
		grants  []string
		request auth.Attributes
		headers []string
		want    string // constraint and groups, or what the refusal says after a "!"
	}{
		"a user":                      {jane, list, []string{"User: jane"}, "impersonate:user-info [system:authenticated]"},
		"another verb":                {jane, deletes, []string{"User: jane"}, `!cannot impersonate-on:user-info:delete resource "pods"`},
		"another user":                {jane, list, []string{"User: joe"}, `!users.authentication.k8s.io "joe" is forbidden: User "system:serviceaccount:default:c" cannot impersonate:user-info resource "users"`},
		"no action":                   {jane[:1], list, []string{"User: jane"}, "!cannot impersonate-on:user-info:list"},
		"a group that is not given":   {jane, list, []string{"User: jane", "Group: a"}, "!cannot impersonate:user-info resource \"groups\""},
		"a group":                     {append([]string{"impersonate:user-info " + authn + "groups /a"}, jane...), list, []string{"User: jane", "Group: a"}, "impersonate:user-info [a system:authenticated]"},
		"a uid":                       {append([]string{"impersonate:user-info " + authn + "uids /7"}, jane...), list, []string{"User: jane", "Uid: 7"}, "impersonate:user-info [system:authenticated]"},
		"an extra field":              {append([]string{"impersonate:user-info " + authn + "userextras/acme.io/scopes /v"}, jane...), list, []string{"User: jane", "Extra-acme.io%2fscopes: v"}, "impersonate:user-info [system:authenticated]"},
		"many groups":                 {append([]string{"impersonate:user-info " + authn + "groups /*"}, jane...), list, append([]string{"User: jane"}, groups...), "impersonate:user-info [a b c d system:authenticated]"},
		"one group by all":            {append([]string{"impersonate:user-info " + authn + "groups /*"}, jane...), list, []string{"User: jane", "Group: a"}, "!groups"},
		"masters":                     {append([]string{"impersonate:user-info " + authn + "groups /system:masters"}, jane...), list, []string{"User: jane", "Group: system:masters"}, "!impersonating the system:masters group is not allowed"},
		"masters without constraint":  {[]string{"impersonate /users /jane", "impersonate /groups /system:masters"}, list, []string{"User: jane", "Group: system:masters"}, " [system:masters system:authenticated]"},
		"an invalid key":              {jane, list, []string{"User: jane", "Extra-acme.io%2f%41: v"}, "!non-lowercase key"},
		"a key without a domain":      {append([]string{"impersonate:user-info " + authn + "userextras/scopes /v"}, jane...), list, []string{"User: jane", "Extra-scopes: v"}, "!must be a domain-prefixed path"},
		"an account":                  {account, list, []string{"User: system:serviceaccount:default:app-sa"}, "impersonate:serviceaccount [system:serviceaccounts system:serviceaccounts:default system:authenticated]"},
		"an account with a group":     {account, list, []string{"User: system:serviceaccount:default:app-sa", "Group: a"}, `!cannot impersonate resource "serviceaccounts"`},
		"an account as a user":        {[]string{"impersonate-on:user-info" + listPods, "impersonate:user-info " + authn + "users /system:serviceaccount:default:app-sa"}, list, []string{"User: system:serviceaccount:default:app-sa"}, "!cannot impersonate-on:serviceaccount:list"},
		"an account of another":       {account, list, []string{"User: system:serviceaccount:prod:app-sa"}, `!cannot impersonate:serviceaccount resource "serviceaccounts" in API group "authentication.k8s.io" in the namespace "prod"`},
		"a node":                      {arbitrary, list, []string{"User: system:node:mynode"}, "impersonate:arbitrary-node [system:nodes system:authenticated]"},
		"another node":                {arbitrary, list, []string{"User: system:node:other"}, "!cannot impersonate:arbitrary-node"},
		"its node":                    {associated, list, []string{"User: system:node:mynode"}, "impersonate:associated-node [system:nodes system:authenticated]"},
		"not its node":                {associated, list, []string{"User: system:node:other"}, "!cannot impersonate-on:arbitrary-node:list"},
		"its node with a group":       {associated, list, []string{"User: system:node:mynode", "Group: system:nodes"}, `!cannot impersonate resource "users"`},
		"without constraint":          {[]string{"impersonate /users /jane"}, list, []string{"User: jane"}, " [system:authenticated]"},
		"without constraint, a group": {[]string{"impersonate /users /jane"}, list, []string{"User: jane", "Group: a"}, `!groups "a" is forbidden`},
		"a path":                      {[]string{jane[0], "impersonate-on:user-info:get /version"}, auth.Attributes{Verb: "get", Path: "/version"}, []string{"User: jane"}, "impersonate:user-info [system:authenticated]"},
		"another path":                {[]string{jane[0], "impersonate-on:user-info:get /version"}, auth.Attributes{Verb: "get", Path: "/metrics"}, []string{"User: jane"}, `!cannot impersonate-on:user-info:get path "/metrics"`},
	} {
		g := &grants{list: test.grants}
		as, err := impersonate(g, controller, test.request, test.headers...)
		got := fmt.Sprint(as.Constraint, " ", as.User.Groups)
		if says, refused := strings.CutPrefix(test.want, "!"); refused {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) || as.User.Name != controller.Name {
				t.Errorf("%s: %+v, %v; want a refusal with %q", name, as.User, err, says)
			}
		} else if err != nil || got != test.want || len(as.Needed) == 0 {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
		if name == "its node" && (len(g.extra) != 1 || len(g.extra[extraNodeKeys]) != 2) {
			t.Errorf("a decision about an own node depends on %v", g.extra)
		}
	}
	if _, err := impersonate(&grants{list: associated}, auth.User{Name: "jane", Extra: controller.Extra}, list, "User: system:node:mynode"); err == nil {
		t.Error("a user that is no service account impersonates a node as its own")
	}
}

// TestAlternatives: a user that may be impersonated in two ways needs one of them.
func TestAlternatives(t *testing.T) {
	request := auth.Attributes{Verb: "watch", Version: "v1", Resource: "pods"}
	both := []string{"impersonate /users /jane", "impersonate:user-info " + authn + "users /jane", "impersonate-on:user-info:watch /pods /"}
	as, err := impersonate(&grants{list: both}, auth.User{Name: "joe"}, request, "User: jane")
	if err != nil || as.Constraint != "impersonate:user-info" || len(as.Needed) != 2 || count(as.Needed[0]) != 2 || count(as.Needed[1]) != 1 {
		t.Errorf("%+v, %v", as, err)
	}
	// Without constraint, a node has not the same groups.
	as, err = impersonate(&grants{list: []string{"impersonate /users /system:node:n"}}, auth.User{Name: "joe"}, request, "User: system:node:n")
	if err != nil || as.User.In(auth.Nodes) || len(as.Needed) != 1 {
		t.Errorf("%+v, %v", as, err)
	}
}

// TestUnconstrainedImpersonationCostsOneDecision: the verb impersonate, once it has allowed
// a user something, is asked first, also where nothing else can be decided.
func TestUnconstrainedImpersonationCostsOneDecision(t *testing.T) {
	g := &grants{list: []string{"impersonate /users /jane"}, fails: "impersonate-on:user-info:list"}
	a := New(g)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Impersonate-User", "jane")
	joe := auth.User{Name: "joe"}
	for _, want := range []int64{2, 1, 1} {
		g.decided.Store(0)
		if _, err := a.Impersonate(r, joe, func() auth.Attributes { return auth.Attributes{User: joe, Verb: "list", Resource: "pods"} }); err != nil || g.decided.Load() != want {
			t.Errorf("%d decisions, %v; want %d", g.decided.Load(), err, want)
		}
	}
	r.Header.Set("Impersonate-User", "root")
	if _, err := a.Impersonate(r, joe, func() auth.Attributes { return auth.Attributes{User: joe, Verb: "list", Resource: "pods"} }); !apierrors.IsInternalError(err) {
		t.Errorf("without a decision: %v", err)
	}
	for i := range 2*maxUsers + 1 {
		a.unconstrained.note(fmt.Sprint(i), true)
	}
	if n := len(a.unconstrained.names); n > maxUsers {
		t.Errorf("%d names are kept", n)
	}
}

func count(rights iter.Seq[auth.Attributes]) int { return len(slices.Collect(rights)) }
