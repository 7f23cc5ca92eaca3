package serviceaccount

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const issuer = "https://issuer.example"

// fixture is the tokens of the accounts in a store, at a time that tests set.
type fixture struct {
	*Tokens
	t   testing.TB
	set *registry.Set
	now time.Time
	// change is what a webhook would do to pods, after Accounts.Admit; nil: nothing.
	change func(*corev1.Pod)
}

func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	f := &fixture{t: t, now: time.Now()}
	f.set, err = registry.NewSet(registry.Config{Store: store, Resources: builtin.Table()})
	must(t, err)
	accounts := NewAccounts(f.set, AccountOptions{RootCA: []byte("a certificate")})
	f.set.Admit(namespace.Lifecycle(f.set), accounts.Admit, f.changePod)
	f.set.Validate(accounts.Validate)
	opts := Options{Issuers: []string{issuer}, Keys: newRing(t, newKey(t)), Now: func() time.Time { return f.now }}
	for _, fn := range change {
		fn(&opts)
	}
	f.Tokens, err = NewTokens(f.set, accounts, opts)
	must(t, err)
	must(t, namespace.Ensure(t.Context(), f.set, "ns"))
	must(t, accounts.Ensure(t.Context(), "ns"))
	return f
}

func (f *fixture) changePod(_ context.Context, q *registry.Request) error {
	if pod, ok := q.Object.(*corev1.Pod); ok && f.change != nil {
		f.change(pod)
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func (f *fixture) of(plural string) registry.Registry {
	f.t.Helper()
	r, ok := f.set.Lookup("", "v1", plural)
	if !ok {
		f.t.Fatalf("%s are not served", plural)
	}
	return r
}

func (f *fixture) create(plural string, obj resource.Object) resource.Object {
	f.t.Helper()
	namespace := "ns"
	if !f.of(plural).Resource().Namespaced {
		namespace = ""
	}
	result, err := f.of(plural).Create(f.t.Context(), namespace, obj, registry.WriteOptions{})
	must(f.t, err)
	return result.Object
}

func (f *fixture) remove(plural, name string) {
	f.t.Helper()
	namespace := "ns"
	if !f.of(plural).Resource().Namespaced {
		namespace = ""
	}
	_, err := f.of(plural).Delete(f.t.Context(), namespace, name, nil)
	must(f.t, err)
}

// token issues one for the default account.
func (f *fixture) token(change ...func(*authenticationv1.TokenRequestSpec)) string {
	f.t.Helper()
	request := &authenticationv1.TokenRequest{}
	for _, fn := range change {
		fn(&request.Spec)
	}
	must(f.t, f.IssueToken(f.t.Context(), "ns", DefaultName, request))
	return request.Status.Token
}

func boundTo(kind, name string) func(*authenticationv1.TokenRequestSpec) {
	return func(spec *authenticationv1.TokenRequestSpec) {
		spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name}
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(name), Spec: corev1.PodSpec{
		Containers:     []corev1.Container{{Name: "c", Image: "i"}},
		InitContainers: []corev1.Container{{Name: "i", Image: "i"}},
	}}
}

// counted are the metrics that are not zero, without the part of their names that all have.
func (f *fixture) counted(t testing.TB) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.Collectors()...)
	families, err := registry.Gather()
	must(t, err)
	all := map[string]float64{}
	for _, family := range families {
		if value := family.GetMetric()[0].GetCounter().GetValue(); value > 0 {
			all[strings.TrimPrefix(family.GetName(), "serviceaccount_")] = value
		}
	}
	return all
}

// counts are metrics of one use each; "" is none.
func counts(names ...string) map[string]float64 {
	all := map[string]float64{}
	for _, name := range names {
		if name != "" {
			all[name] = 1
		}
	}
	return all
}

func newRing(t testing.TB, signing crypto.Signer, public ...crypto.PublicKey) *KeyRing {
	t.Helper()
	ring, err := NewKeyRing(signing, public)
	must(t, err)
	return ring
}
