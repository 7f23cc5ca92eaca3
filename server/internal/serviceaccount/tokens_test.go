package serviceaccount

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

func TestTokenStandsForItsAccount(t *testing.T) {
	f := newFixture(t)
	identity, err := f.AuthenticateToken(t.Context(), f.token(), []string{"other", issuer})
	must(t, err)
	user := identity.User
	if user.Name != "system:serviceaccount:ns:default" || user.UID == "" || !user.In("system:serviceaccounts:ns") || !user.In(auth.ServiceAccounts) ||
		len(user.Extra[extraCredential]) != 1 || len(identity.Audiences) != 1 || identity.Audiences[0] != issuer {
		t.Errorf("%+v", identity)
	}
}

// TestLongTokensAreNotKept: a client has tokens made with audiences of megabytes, and none of them stays in memory.
func TestLongTokensAreNotKept(t *testing.T) {
	f := newFixture(t)
	kept := func() int { return len(f.opts.Keys.current.Load().remembered) }
	long := f.token(func(spec *authenticationv1.TokenRequestSpec) {
		spec.Audiences = []string{issuer, strings.Repeat("a", maxRememberedBytes)}
	})
	for range 2 {
		_, err := f.AuthenticateToken(t.Context(), long, []string{issuer})
		must(t, err)
	}
	if n := kept(); n != 0 {
		t.Errorf("%d tokens are kept", n)
	}
	_, err := f.AuthenticateToken(t.Context(), f.token(), []string{issuer})
	must(t, err)
	if n := kept(); n != 1 {
		t.Errorf("%d ordinary tokens are kept", n)
	}
}

// TestTokenEnds: with its time, its account, and what it is bound to.
func TestTokenEnds(t *testing.T) {
	for name, test := range map[string]struct {
		spec func(*authenticationv1.TokenRequestSpec)
		end  func(*fixture)
		says string
	}{
		"time":    {func(*authenticationv1.TokenRequestSpec) {}, func(f *fixture) { f.now = f.now.Add(time.Hour + leeway + time.Second) }, "has expired"},
		"future":  {func(*authenticationv1.TokenRequestSpec) {}, func(f *fixture) { f.now = f.now.Add(-leeway - time.Second) }, "not valid yet"},
		"account": {func(*authenticationv1.TokenRequestSpec) {}, func(f *fixture) { f.remove("serviceaccounts", "default") }, "not found"},
		"another account": {func(*authenticationv1.TokenRequestSpec) {}, func(f *fixture) {
			f.remove("serviceaccounts", "default")
			must(f.t, f.accounts.Ensure(f.t.Context(), "ns"))
		}, "its uid is"},
		"pod":      {boundTo("Pod", "p"), func(f *fixture) { f.remove("pods", "p") }, "not found"},
		"secret":   {boundTo("Secret", "s"), func(f *fixture) { f.remove("secrets", "s") }, "not found"},
		"node":     {boundTo("Node", "n"), func(f *fixture) { f.remove("nodes", "n") }, "not found"},
		"audience": {func(spec *authenticationv1.TokenRequestSpec) { spec.Audiences = []string{"vault"} }, func(*fixture) {}, "audiences"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.create("pods", newPod("p"))
			f.create("secrets", &corev1.Secret{ObjectMeta: named("s")})
			f.create("nodes", &corev1.Node{ObjectMeta: named("n")})
			token := f.token(test.spec)
			if name != "audience" {
				_, err := f.AuthenticateToken(t.Context(), token, f.Audiences())
				must(t, err)
			}
			test.end(f)
			_, err := f.AuthenticateToken(t.Context(), token, f.Audiences())
			if err == nil || errors.Is(err, auth.ErrUnknownToken) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

// TestTokenThatLivesOn after its holder should have replaced it, as kube-apiserver makes them for
// pods, is counted, and the audit is told of it from then on.
func TestTokenThatLivesOn(t *testing.T) {
	for name, test := range map[string]struct {
		warnAfter time.Duration // 0: nothing is said
		counted   string
		annotated string
	}{
		"in time": {time.Minute, "valid_tokens_total", ""},
		"late":    {-time.Minute, "stale_tokens_total", "subject: system:serviceaccount:ns:default, seconds after warning threshold: 60"},
		"another": {0, "", ""},
	} {
		f := newFixture(t)
		account, err := f.accounts.get(t.Context(), "ns", DefaultName)
		must(t, err)
		c := &claims{
			Claims:     jwt.Claims{Issuer: issuer, Subject: "system:serviceaccount:ns:default", Expiry: jwt.NewNumericDate(f.now.Add(time.Hour))},
			Audience:   []string{issuer},
			Kubernetes: &bound{Namespace: "ns", ServiceAccount: reference{account.Name, account.UID}},
		}
		if test.warnAfter != 0 {
			c.Kubernetes.WarnAfter = jwt.NewNumericDate(f.now.Add(test.warnAfter))
		}
		token, err := f.sign(c)
		must(t, err)
		report := &reported{annotations: map[string]string{}}
		_, err = f.AuthenticateToken(reporter.With(t.Context(), report), token, f.Audiences())
		must(t, err)
		if got := report.annotations["authentication.k8s.io/stale-token"]; got != test.annotated || !maps.Equal(f.counted(t), counts(test.counted)) {
			t.Errorf("%s: annotated with %q, counted: %v", name, got, f.counted(t))
		}
	}
}

// TestLifetimes of tokens: what is asked for is bounded, and what pods get without asking lives on
// if that is wanted.
func TestLifetimes(t *testing.T) {
	day := func(spec *authenticationv1.TokenRequestSpec) { spec.ExpirationSeconds = new(int64(24 * 60 * 60)) }
	ofPods := func(spec *authenticationv1.TokenRequestSpec) {
		boundTo("Pod", "p")(spec)
		spec.ExpirationSeconds = new(int64(podTokenSeconds))
	}
	for name, test := range map[string]struct {
		limit  time.Duration
		extend bool
		spec   func(*authenticationv1.TokenRequestSpec)
		said   time.Duration // the lifetime in the answer
		lives  time.Duration
		warned string
	}{
		"no limit":             {0, false, day, 24 * time.Hour, 24 * time.Hour, ""},
		"beyond the limit":     {2 * time.Hour, false, day, 2 * time.Hour, 2 * time.Hour, "requested expiration of 86400 seconds shortened to 7200 seconds"},
		"below the limit":      {48 * time.Hour, false, day, 24 * time.Hour, 24 * time.Hour, ""},
		"of a pod":             {0, false, ofPods, 3607 * time.Second, 3607 * time.Second, ""},
		"of a pod, extended":   {2 * time.Hour, true, ofPods, 3607 * time.Second, 365 * 24 * time.Hour, ""},
		"asked for by a user":  {0, true, day, 24 * time.Hour, 24 * time.Hour, ""},
		"for another audience": {0, true, func(spec *authenticationv1.TokenRequestSpec) { ofPods(spec); spec.Audiences = []string{"vault"} }, 3607 * time.Second, 3607 * time.Second, ""},
	} {
		f := newFixture(t, func(o *Options) { o.MaxLifetime, o.Extend = test.limit, test.extend })
		f.create("pods", newPod("p"))
		request, report := &authenticationv1.TokenRequest{}, &reported{annotations: map[string]string{}}
		test.spec(&request.Spec)
		must(t, f.IssueToken(reporter.With(t.Context(), report), "ns", DefaultName, request))
		var c claims
		parsed, err := jwt.ParseSigned(request.Status.Token, algorithms)
		must(t, err)
		must(t, parsed.UnsafeClaimsWithoutVerification(&c))
		said, lives := request.Status.ExpirationTimestamp.Sub(f.now.Truncate(time.Second)), c.Expiry.Time().Sub(f.now.Truncate(time.Second))
		if said != test.said || lives != test.lives || time.Duration(*request.Spec.ExpirationSeconds)*time.Second != test.said || strings.Join(report.warnings, "") != test.warned {
			t.Errorf("%s: it ends after %v, the answer says %v, the spec %d, warnings %q", name, lives, said, *request.Spec.ExpirationSeconds, report.warnings)
		}
		if after := c.Kubernetes.WarnAfter; (after != nil) != (test.lives > test.said) || after != nil && after.Time().Sub(f.now.Truncate(time.Second)) != test.said {
			t.Errorf("%s: to be replaced by %v", name, after)
		}
	}
}

// TestIssuedTokenIsFoundAgain: the audit of the request for a token names it as the users of the
// requests with it do.
func TestIssuedTokenIsFoundAgain(t *testing.T) {
	f := newFixture(t)
	report := &reported{annotations: map[string]string{}}
	request := &authenticationv1.TokenRequest{}
	must(t, f.IssueToken(reporter.With(t.Context(), report), "ns", DefaultName, request))
	identity, err := f.AuthenticateToken(t.Context(), request.Status.Token, f.Audiences())
	must(t, err)
	if got := report.annotations["authentication.kubernetes.io/issued-credential-id"]; got == "" || identity.User.Extra[extraCredential][0] != got {
		t.Errorf("%q, and the user has %v", got, identity.User.Extra)
	}
}

func TestForgedTokens(t *testing.T) {
	f, stranger := newFixture(t), newFixture(t)
	foreign := newFixture(t, func(o *Options) { o.Issuers = []string{"https://elsewhere.example"} })
	parts := strings.Split(f.token(), ".")
	none := "eyJhbGciOiJub25lIn0." + parts[1] + "."
	symmetric, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte("0123456789abcdef0123456789abcdef")}, nil)
	must(t, err)
	weak, err := jwt.Signed(symmetric).Claims(jwt.Claims{Issuer: issuer}).Serialize()
	must(t, err)
	for name, test := range map[string]struct {
		token   string
		unknown bool
	}{
		"another key":      {stranger.token(), false},
		"another issuer":   {foreign.token(), true},
		"changed":          {parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])), false},
		"no signature":     {none, true},
		"symmetric":        {weak, true},
		"no token":         {"abc", true},
		"nothing":          {"", true},
		"the account gone": {strings.Join(parts[:2], "."), true},
	} {
		_, err := f.AuthenticateToken(t.Context(), test.token, f.Audiences())
		if err == nil || errors.Is(err, auth.ErrUnknownToken) != test.unknown {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOldKeysVerify(t *testing.T) {
	old := newKey(t)
	f := newFixture(t, func(o *Options) { o.Keys = newRing(t, old) })
	token := f.token()
	ring := newRing(t, newKey(t))
	rotated, err := NewTokens(f.set, f.accounts, Options{Issuers: []string{"https://new.example", issuer}, Audiences: []string{issuer}, Keys: ring})
	must(t, err)
	if _, err := rotated.AuthenticateToken(t.Context(), token, rotated.Audiences()); err == nil {
		t.Error("a token of a key that is not known any more was accepted")
	}
	next := newKey(t)
	must(t, ring.Replace(next, []crypto.PublicKey{old.Public()}))
	_, err = rotated.AuthenticateToken(t.Context(), token, rotated.Audiences())
	must(t, err)
	data, err := rotated.Keys()
	must(t, err)
	var keys jose.JSONWebKeySet
	must(t, json.Unmarshal(data, &keys))
	parsed, err := jwt.ParseSigned(token, algorithms)
	must(t, err)
	found := keys.Key(parsed.Headers[0].KeyID)
	if len(keys.Keys) != 2 || len(found) != 1 || !found[0].IsPublic() {
		t.Fatalf("%s", data)
	}
	// Any client that has the document can verify the token.
	must(t, parsed.Claims(found[0].Key, &claims{}))
	// The old key is taken out: its token ends at once, although its verdict was cached.
	must(t, ring.Replace(next, nil))
	if _, err := rotated.AuthenticateToken(t.Context(), token, rotated.Audiences()); err == nil {
		t.Error("a token of a key that was taken out was accepted")
	}
	if err := ring.Replace(next, []crypto.PublicKey{"no key"}); err == nil {
		t.Error("a key of an unknown type was accepted")
	}
}

func TestTokenRequestsAreChecked(t *testing.T) {
	f := newFixture(t)
	other := newPod("other")
	other.Spec.ServiceAccountName = "builder"
	f.create("serviceaccounts", &corev1.ServiceAccount{ObjectMeta: named("builder")})
	f.create("pods", other)
	seconds := func(n int64) authenticationv1.TokenRequestSpec {
		return authenticationv1.TokenRequestSpec{ExpirationSeconds: &n}
	}
	ref := func(version, kind, name, uid string) authenticationv1.TokenRequestSpec {
		return authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid)}}
	}
	for name, test := range map[string]struct {
		account string
		spec    authenticationv1.TokenRequestSpec
		is      func(error) bool
	}{
		"too short":             {"default", seconds(599), apierrors.IsInvalid},
		"too long":              {"default", seconds(1<<32 + 1), apierrors.IsInvalid},
		"no account":            {"missing", authenticationv1.TokenRequestSpec{}, apierrors.IsNotFound},
		"no pod":                {"default", ref("v1", "Pod", "p", ""), apierrors.IsNotFound},
		"another account's pod": {"default", ref("v1", "Pod", "other", ""), apierrors.IsBadRequest},
		"another uid":           {"builder", ref("v1", "Pod", "other", "x"), apierrors.IsConflict},
		"another kind":          {"default", ref("apps/v1", "Deployment", "d", ""), apierrors.IsBadRequest},
		"no name":               {"default", ref("v1", "Pod", "", ""), apierrors.IsBadRequest},
		"no name for a pod":     {"default", ref("v1", "Pod", "a/b", ""), apierrors.IsBadRequest},
		"nothing":               {"default", ref("", "", "", ""), apierrors.IsBadRequest},
		"attestations":          {"default", authenticationv1.TokenRequestSpec{Attestations: map[string]authenticationv1.AttestationValue{"a": {"b"}}}, apierrors.IsInvalid},
	} {
		err := f.IssueToken(t.Context(), "ns", test.account, &authenticationv1.TokenRequest{Spec: test.spec})
		if !test.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stranger := &authenticationv1.TokenRequest{}
	stranger.UID = "x"
	if err := f.IssueToken(t.Context(), "ns", "builder", stranger); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "does not match the UID of the service account") {
		t.Errorf("for an account that is gone: %v", err)
	}
	request := &authenticationv1.TokenRequest{Spec: seconds(600)}
	must(t, f.IssueToken(t.Context(), "ns", "builder", request))
	if request.UID == "" || request.Name != "builder" || request.Namespace != "ns" {
		t.Errorf("%+v", request.ObjectMeta)
	}
	if left := request.Status.ExpirationTimestamp.Sub(f.now); left > 10*time.Minute || left < 10*time.Minute-time.Second || request.Spec.Audiences[0] != issuer {
		t.Errorf("%v, %v", left, request.Spec)
	}
}

// TestDefaultAccountIsMadeWhenNeeded: a token can be had before the keeper
// comes.
func TestDefaultAccountIsMadeWhenNeeded(t *testing.T) {
	f := newFixture(t)
	must(t, namespace.Ensure(t.Context(), f.set, "fresh"))
	must(t, f.IssueToken(t.Context(), "fresh", DefaultName, &authenticationv1.TokenRequest{}))
	f.accounts.noDefaults = true
	f.remove("serviceaccounts", DefaultName)
	if err := f.IssueToken(t.Context(), "ns", DefaultName, &authenticationv1.TokenRequest{}); !apierrors.IsNotFound(err) {
		t.Errorf("with accounts switched off: %v", err)
	}
	f.accounts.noDefaults = false
	if err := f.IssueToken(t.Context(), "no-namespace", DefaultName, &authenticationv1.TokenRequest{}); !apierrors.IsNotFound(err) {
		t.Errorf("in no namespace: %v", err)
	}
}

// FuzzToken: whatever verifies says what was signed, and nothing else. The parts of a
// token are fuzzed before they are encoded; without a header, the payload is the whole
// token. All processes of the test have the same key.
func FuzzToken(f *testing.F) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, 32))
	must(f, err)
	k := newRing(f, private).current.Load()
	issued, err := k.signer.sign(&claims{Claims: jwt.Claims{Issuer: issuer, Subject: "jane"}, Kubernetes: &bound{Namespace: "ns"}})
	must(f, err)
	want, err := k.verify(issued, []string{issuer})
	must(f, err)
	var parts [3][]byte
	for i, part := range strings.Split(issued, ".") {
		parts[i], err = base64.RawURLEncoding.DecodeString(part)
		must(f, err)
	}
	f.Add(parts[0], parts[1], parts[2])
	f.Add([]byte(nil), []byte(issued), []byte(nil))
	f.Add([]byte(`{"alg":"none"}`), parts[1], []byte(nil))
	f.Add([]byte(`{"alg":"HS256"}`), parts[1], parts[2])
	f.Add([]byte(`{"alg":"ES256","kid":"x","b64":false,"crit":["b64"]}`), []byte(`{}`), []byte("x"))
	f.Add([]byte(nil), []byte("a.b.c"), []byte(nil))
	f.Fuzz(func(t *testing.T, header, payload, signature []byte) {
		token := string(payload)
		if len(header) > 0 {
			token = base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload) + "." +
				base64.RawURLEncoding.EncodeToString(signature)
		}
		if got, err := k.verify(token, []string{issuer}); err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q says %+v", token, got)
		}
	})
}
