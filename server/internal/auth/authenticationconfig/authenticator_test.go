package authenticationconfig

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"k8s.io/component-base/metrics/legacyregistry"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/oidctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMappedClaims(t *testing.T) {
	p := oidctest.NewProvider(t)
	a := load(t, oidctest.File(p.Entry("")))
	user := await(t, a, p.Token(nil))
	if user.Name != "oidc:jane" || !slices.Equal(user.Groups, []string{"dev", "ops"}) || !slices.Equal(user.Extra["example.com/tenant"], []string{"acme"}) {
		t.Errorf("%+v", user)
	}
}

// TestExaminedTokensAreCounted: by their issuer, unless they are remembered.
func TestExaminedTokensAreCounted(t *testing.T) {
	p := oidctest.NewProvider(t)
	a := load(t, oidctest.File(p.Entry("")))
	await(t, a, p.Token(nil))
	count := func(result string) uint64 {
		t.Helper()
		var m dto.Metric
		hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(p.URL)))
		if err := a.opts.Examined.latency.WithLabelValues(result, hash).(prometheus.Metric).Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetHistogram().GetSampleCount()
	}
	accepted, refused := count("success"), count("failure") // until the issuer has answered, tokens are refused
	good := p.Token(map[string]any{"sub": "counted"})
	for range 3 {
		await(t, a, good)
	}
	if _, err := a.AuthenticateToken(t.Context(), p.Token(map[string]any{"aud": "vault"}), nil); err == nil {
		t.Error("a token for another audience was accepted")
	}
	if got := count("success") - accepted; got != 1 {
		t.Errorf("%d accepted tokens are counted, want 1", got)
	}
	if got := count("failure") - refused; got != 1 {
		t.Errorf("%d refused tokens are counted, want 1", got)
	}
}

// TestRefusedTokens: what an attacker can make of a token, or without one.
// TestFetchedKeysAreCounted: when, and which, until the issuer is taken out of the file.
func TestFetchedKeysAreCounted(t *testing.T) {
	p := oidctest.NewProvider(t)
	a := load(t, oidctest.File(p.Entry("")))
	await(t, a, p.Token(nil))
	issuer := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(p.URL)))
	const prefix = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_"
	expect := func(want ...string) {
		t.Helper()
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, family := range families {
			rest, ok := strings.CutPrefix(family.GetName(), prefix)
			of := func(m *dto.Metric) bool {
				return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "jwt_issuer_hash" && l.GetValue() == issuer })
			}
			if ok && slices.ContainsFunc(family.GetMetric(), of) {
				found = append(found, rest)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("metrics %q of the issuer, want %q", found, want)
		}
	}
	expect("key_set_info", "timestamp_seconds")
	if err := a.Load(oidctest.File()); err != nil {
		t.Fatal(err)
	}
	expect()
}

func TestRefusedTokens(t *testing.T) {
	p, other := oidctest.NewProvider(t), oidctest.NewProvider(t)
	a := load(t, oidctest.File(p.Entry(`  claimValidationRules:
  - {expression: 'claims.tenant == "acme"', message: another tenant}
  userValidationRules:
  - {expression: '!user.username.startsWith("oidc:system:")', message: a name of the system}
`), other.Entry("")))
	await(t, a, p.Token(nil))
	good := strings.Split(p.Token(nil), ".")
	encode := base64.RawURLEncoding.EncodeToString
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := p.Key()
	public, err := json.Marshal(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		token   string
		unknown bool // to be tried by another authenticator
	}{
		"expired":               {p.Token(map[string]any{"exp": time.Now().Add(-time.Second).Unix()}), false},
		"not valid yet":         {p.Token(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), false},
		"no end":                {p.Token(map[string]any{"exp": nil}), false},
		"another audience":      {p.Token(map[string]any{"aud": "vault"}), false},
		"no audience":           {p.Token(map[string]any{"aud": nil}), false},
		"another tenant":        {p.Token(map[string]any{"tenant": "evil"}), false},
		"a system's name":       {p.Token(map[string]any{"sub": "system:admin"}), false},
		"no subject":            {p.Token(map[string]any{"sub": nil}), false},
		"a number for name":     {p.Token(map[string]any{"sub": 7}), false},
		"another issuer":        {p.Token(map[string]any{"iss": "https://evil.example"}), true},
		"signed by another":     {oidctest.Sign(t, jose.ES256, other.Key(), p.Claims(nil)), false},
		"kid of the real":       {oidctest.Sign(t, jose.ES256, jose.JSONWebKey{Key: stranger, KeyID: "first"}, p.Claims(nil)), false},
		"a kid that no key has": {oidctest.Sign(t, jose.ES256, jose.JSONWebKey{Key: stranger, KeyID: "../../dev/null"}, p.Claims(nil)), false},
		"no kid":                {oidctest.Sign(t, jose.ES256, stranger, p.Claims(nil)), false},
		"alg none":              {encode([]byte(`{"alg":"none","kid":"first"}`)) + "." + good[1] + ".", false},
		"alg None, signed":      {encode([]byte(`{"alg":"None","kid":"first"}`)) + "." + good[1] + "." + good[2], false},
		"symmetric":             {oidctest.Sign(t, jose.HS256, jose.JSONWebKey{Key: public, KeyID: "first"}, p.Claims(nil)), false},
		"alg of another key":    {encode([]byte(`{"alg":"RS256","kid":"first"}`)) + "." + good[1] + "." + good[2], false},
		"key in the header":     {encode([]byte(`{"alg":"ES256","jwk":`+string(public)+`}`)) + "." + good[1] + "." + encode(make([]byte, 64)), false},
		"changed claims":        {good[0] + "." + encode([]byte(`{"iss":"`+p.URL+`","aud":"levelwire","sub":"root","exp":9999999999}`)) + "." + good[2], false},
		"no signature":          {good[0] + "." + good[1] + ".", false},
		"two parts":             {good[0] + "." + good[1], true},
		"JSON":                  {`{"payload":"` + good[1] + `","protected":"` + good[0] + `","signature":"` + good[2] + `"}`, true},
		"nothing":               {"", true},
		"dots":                  {"..", true},
		"huge":                  {good[0] + "." + strings.Repeat("A", 3<<20) + "." + good[2], true},
		"deep":                  {good[0] + "." + encode([]byte(`{"iss":"`+p.URL+`","x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`)) + "." + good[2], true},
	} {
		identity, err := a.AuthenticateToken(t.Context(), test.token, nil)
		if err == nil || errors.Is(err, auth.ErrUnknownToken) != test.unknown {
			t.Errorf("%s: %+v, %v", name, identity, err)
		}
	}
	await(t, a, p.Token(nil)) // still
}

// TestRotatedKeys: a token of a new key is accepted without a restart, and one of a key
// that is gone is not, except for the seconds that an accepted token is remembered, and
// the moment in which the library hands the new keys to who waits before it keeps them.
func TestRotatedKeys(t *testing.T) {
	p := oidctest.NewProvider(t)
	a := load(t, oidctest.File(p.Entry("")))
	await(t, a, p.Token(nil))
	old := p.Key()
	p.Rotate("second")
	await(t, a, p.Token(nil))
	awaitRefusal(t, a, func(i int) string { // of tokens that were never seen
		return oidctest.Sign(t, jose.ES256, old, p.Claims(map[string]any{"sub": fmt.Sprint("late-", i)}))
	})
}

// TestUnknownKeysDoNotFetch: tokens with made-up keys make the server ask the issuer once
// a second, however many there are.
func TestUnknownKeysDoNotFetch(t *testing.T) {
	p := oidctest.NewProvider(t)
	a := load(t, oidctest.File(p.Entry("")))
	await(t, a, p.Token(nil))
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	before, start := p.Fetched.Load(), time.Now()
	for i := range 500 {
		token := oidctest.Sign(t, jose.ES256, jose.JSONWebKey{Key: stranger, KeyID: strconv.Itoa(i)}, p.Claims(nil))
		if _, err := a.AuthenticateToken(t.Context(), token, nil); err == nil {
			t.Fatal("accepted")
		}
	}
	if got, most := p.Fetched.Load()-before, int64(time.Since(start)/fetchInterval)+1; got > most {
		t.Errorf("the issuer was asked %d times in %s", got, time.Since(start))
	}
}

// TestHangingIssuer: at the start it delays nothing, its tokens are refused in a bounded
// time, and the tokens of others are accepted.
func TestHangingIssuer(t *testing.T) {
	p, hanging := oidctest.NewProvider(t), oidctest.NewProvider(t)
	hanging.Suspend()
	start := time.Now()
	a := load(t, oidctest.File(hanging.Entry(""), p.Entry("")))
	await(t, a, p.Token(nil))
	if _, err := a.AuthenticateToken(t.Context(), hanging.Token(nil), nil); err == nil || !strings.Contains(err.Error(), hanging.URL) {
		t.Errorf("%v", err)
	}
	// It hangs later: when its keys have to be fetched again.
	p.Suspend()
	p.Rotate("second")
	for { // what was fetched a moment ago counts at first
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) //passes: the issuer never answers
		_, err := a.AuthenticateToken(ctx, p.Token(nil), nil)
		cancel()
		if err == nil {
			t.Fatal("a token of a key that could not be fetched was accepted")
		}
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %s", took)
	}
}

// TestReload: an issuer that is taken out ends at once, although its token is remembered;
// one that stays is not contacted again; one that is added is accepted; rules that change
// count. A file that is wrong changes nothing.
func TestReload(t *testing.T) {
	p, other := oidctest.NewProvider(t), oidctest.NewProvider(t)
	a := load(t, oidctest.File(p.Entry(""), other.Entry("")))
	mine, others := p.Token(nil), other.Token(nil)
	await(t, a, mine)
	await(t, a, others)
	kept := a.current.Load().issuers[1]
	reload := func(data []byte) {
		t.Helper()
		if err := a.Load(data); err != nil {
			t.Fatal(err)
		}
	}
	reload(oidctest.File(other.Entry("")))
	if _, err := a.AuthenticateToken(t.Context(), mine, nil); !errors.Is(err, auth.ErrUnknownToken) {
		t.Errorf("after its issuer was taken out: %v", err)
	}
	if a.current.Load().issuers[0] != kept {
		t.Error("an issuer that stayed was made again")
	}
	await(t, a, others)
	reload(oidctest.File(p.Entry(""), other.Entry("")))
	await(t, a, mine)
	rule := `  claimValidationRules:
  - {expression: 'claims.tenant == "acme"', message: another tenant}
`
	evil := p.Token(map[string]any{"tenant": "evil"})
	await(t, a, evil)
	reload(oidctest.File(p.Entry(rule), other.Entry("")))
	// Judged by the former rules until the issuer has answered, and not remembered.
	awaitRefusal(t, a, func(int) string { return evil })
	await(t, a, mine)
	if err := a.Load([]byte("broken")); err == nil {
		t.Error("a broken file was loaded")
	}
	await(t, a, mine)
	reload(oidctest.File()) // no issuers at all
	if _, err := a.AuthenticateToken(t.Context(), others, nil); !errors.Is(err, auth.ErrUnknownToken) {
		t.Errorf("%v", err)
	}
}

func TestBadFiles(t *testing.T) {
	a := New(Options{DisallowedIssuers: []string{"https://own.example"}})
	defer a.Close()
	entry := func(text string) []byte {
		return oidctest.File("- " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n")
	}
	const valid = "issuer: {url: 'https://x.example', audiences: [a]}\nclaimMappings: {username: {claim: sub, prefix: ''}}"
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"empty":              {nil, "the file is empty"},
		"no YAML":            {[]byte("{"), "yaml: line 1"},
		"another kind":       {[]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: []\n"), "kind must be AuthenticationConfiguration"},
		"unknown kind":       {[]byte("apiVersion: v1\nkind: Pod\n"), "kind must be AuthenticationConfiguration"},
		"unknown field":      {append(oidctest.File(), "jwts: []\n"...), "unknown field"},
		"plain HTTP":         {entry(strings.Replace(valid, "https:", "http:", 1)), "https"},
		"own issuer":         {entry(strings.Replace(valid, "x.example", "own.example", 1)), "own.example"},
		"no audience":        {entry(strings.Replace(valid, ", audiences: [a]", "", 1)), "audiences"},
		"bad expression":     {entry(strings.Replace(valid, "{claim: sub, prefix: ''}", "{expression: 'claims.'}", 1)), "Syntax error"},
		"bad authority":      {entry(strings.Replace(valid, "audiences: [a]", "audiences: [a], certificateAuthority: x", 1)), "certificateAuthority"},
		"twice":              {oidctest.File(string(entry(valid))[len(oidctest.File())+len("jwt:\n"):], string(entry(valid))[len(oidctest.File())+len("jwt:\n"):]), "Duplicate"},
		"useless conditions": {append(oidctest.File(), "anonymous: {enabled: false, conditions: [{path: /x}]}\n"...), "enabled should be set"},
	} {
		if err := a.Load(test.data); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %s", name, err, test.says)
		}
	}
	if err := a.Load(entry(valid)); err != nil {
		t.Error(err)
	}
}

func TestAnonymous(t *testing.T) {
	for text, want := range map[string]string{
		"": "- -", "anonymous: {enabled: false}\n": "false false", "anonymous: {enabled: true}\n": "true true",
		"anonymous: {enabled: true, conditions: [{path: /livez}]}\n": "true false",
	} {
		a := load(t, append(oidctest.File(), text...))
		var got []string
		for _, path := range []string{"/livez", "/livez/"} {
			allowed, said := a.Anonymous(path)
			answer := fmt.Sprint(allowed)
			if !said {
				answer = "-"
			}
			got = append(got, answer)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	refusing := New(Options{CheckAnonymous: func(everywhere bool) error {
		if everywhere {
			return errors.New("everybody")
		}
		return nil
	}})
	defer refusing.Close()
	if err := refusing.Load(append(oidctest.File(), "anonymous: {enabled: true}\n"...)); err == nil {
		t.Error("everybody may do everything")
	}
	if err := refusing.Load(append(oidctest.File(), "anonymous: {enabled: true, conditions: [{path: /livez}]}\n"...)); err != nil {
		t.Error(err)
	}
}
