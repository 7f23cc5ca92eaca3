package auth

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestTokenFile(t *testing.T) {
	const content = `# comment
secret-1,alice,u1,"dev, ops"
secret-2,bob,u2
`
	users, err := ParseTokens([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	tokens := NewStaticTokens(users)
	for token, want := range map[string]User{
		"secret-1": {Name: "alice", UID: "u1", Groups: []string{"dev", "ops"}},
		"secret-2": {Name: "bob", UID: "u2"},
	} {
		identity, err := tokens.AuthenticateToken(t.Context(), token, nil)
		if err != nil || !reflect.DeepEqual(identity.User, want) {
			t.Errorf("%s: %+v, %v", token, identity, err)
		}
	}
	if _, err := tokens.AuthenticateToken(t.Context(), "secret", nil); !errors.Is(err, ErrUnknownToken) {
		t.Errorf("a prefix of a token: %v", err)
	}
	tokens.Replace(nil)
	if _, err := tokens.AuthenticateToken(t.Context(), "secret-1", nil); !errors.Is(err, ErrUnknownToken) {
		t.Errorf("a token that was taken out: %v", err)
	}
}

func TestBadTokenFiles(t *testing.T) {
	for content, says := range map[string]string{
		"token,user\n":                "2 columns",
		",user,uid\n":                 "empty token",
		"a,user,uid\na,other,uid\n":   "line 2 repeats a token",
		"a,\"user,uid\n":              "quote",
		"ok,user,uid\nbad,user,u\"\n": "quote",
	} {
		if _, err := parseTokens(strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", content, err, says)
		}
	}
}

// FuzzTokenFile: nothing is let in under an empty token.
func FuzzTokenFile(f *testing.F) {
	f.Add("a,b,c,\"d,e\"\n")
	f.Add("#\n\n,,\n")
	f.Fuzz(func(t *testing.T, content string) {
		users, err := parseTokens(strings.NewReader(content))
		if _, open := users[""]; err == nil && open {
			t.Errorf("%q has an empty token", content)
		}
	})
}

func TestServiceAccountNames(t *testing.T) {
	for user, want := range map[string][2]string{
		ServiceAccountName("ns", "sa"): {"ns", "sa"},
		"system:serviceaccount:ns":     {},
		"system:serviceaccount:a:b:c":  {},
		"system:serviceaccount::b":     {},
		"jane":                         {},
	} {
		namespace, name, ok := SplitServiceAccount(user)
		if !ok {
			namespace, name = "", ""
		}
		if got := [2]string{namespace, name}; got != want || ok != (want[0] != "") {
			t.Errorf("%s: %v %v, want %v", user, got, ok, want)
		}
	}
}

func TestGroupIsAddedOnceAndElsewhere(t *testing.T) {
	shared := make([]string, 1, 4)
	shared[0] = "dev"
	first := User{Groups: shared}.AsAuthenticated()
	second := User{Groups: shared}.AsAuthenticated().AsAuthenticated()
	if len(first.Groups) != 2 || len(second.Groups) != 2 || &first.Groups[0] == &second.Groups[0] {
		t.Errorf("%v and %v share or repeat", first.Groups, second.Groups)
	}
}

func TestMastersFirst(t *testing.T) {
	authorizer := MastersFirst(denyAll{})
	for _, test := range []struct {
		groups []string
		want   Decision
	}{{[]string{Masters}, Allow}, {[]string{"dev"}, Deny}} {
		user := User{Groups: test.groups}
		got, _, err := authorizer.Authorize(t.Context(), Attributes{User: user, Verb: "get", Resource: "pods"})
		if got != test.want || err != nil {
			t.Errorf("%v: %v, %v", test.groups, got, err)
		}
		rules := authorizer.(RuleLister).Rules(t.Context(), user, "ns")
		if all := len(rules.Resources) == 1 && !rules.Incomplete; all != (test.want == Allow) {
			t.Errorf("rules of %v: %+v", test.groups, rules)
		}
	}
}

// TestChangesReachThroughWrappers, until they are not wanted any more. Decisions that
// never change have nothing to stop.
func TestChangesReachThroughWrappers(t *testing.T) {
	changing := &changingAuthorizer{}
	calls := 0
	stop := OnChange(func(string) { calls++ }, AlwaysAllow{}, MastersFirst(changing), AuthorizerUnion{AlwaysAllow{}, changing})
	changing.changes.Notify()
	if calls != 2 {
		t.Errorf("%d calls of a change of two authorizers", calls)
	}
	stop()
	changing.changes.Notify()
	if calls != 2 {
		t.Error("a change was reported after stop")
	}
	if OnChange(func(string) {}, AlwaysAllow{}, MastersFirst(denyAll{}), AuthorizerUnion{denyAll{}}) != nil {
		t.Error("decisions that never change are said to change")
	}
}

type changingAuthorizer struct{ changes Changes }

func (a *changingAuthorizer) Authorize(context.Context, Attributes) (Decision, string, error) {
	return NoOpinion, "", nil
}

func (a *changingAuthorizer) OnChange(changed func(user string)) (stop func()) {
	return a.changes.OnChange(changed)
}

type denyAll struct{}

func (denyAll) Authorize(_ context.Context, _ Attributes) (Decision, string, error) {
	return Deny, "no", nil
}

func TestUnionAsksUntilOneAccepts(t *testing.T) {
	broken := errors.New("expired")
	union := Union{fixed{ErrUnknownToken}, fixed{errors.New("another issuer's")}, NewStaticTokens(map[string]User{"t": {Name: "u"}}), fixed{broken}}
	if identity, err := union.AuthenticateToken(t.Context(), "t", nil); err != nil || identity.User.Name != "u" {
		t.Errorf("%+v, %v", identity, err)
	}
	if _, err := union.AuthenticateToken(t.Context(), "x", nil); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := union[:1].AuthenticateToken(t.Context(), "x", nil); !errors.Is(err, ErrUnknownToken) {
		t.Errorf("%v", err)
	}
}

type fixed struct{ err error }

func (f fixed) AuthenticateToken(context.Context, string, []string) (Identity, error) {
	return Identity{}, f.err
}
