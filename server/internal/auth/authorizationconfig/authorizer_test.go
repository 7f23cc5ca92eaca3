package authorizationconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/apis/apiserver"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an authorizer with one decision, that may be a webhook.
type fake struct {
	auth.Changes
	decision auth.Decision
	running  atomic.Int32
}

func (f *fake) Authorize(context.Context, auth.Attributes) (auth.Decision, string, error) {
	return f.decision, "", nil
}

func (f *fake) Run(ctx context.Context) {
	f.running.Add(1)
	defer f.running.Add(-1)
	<-ctx.Done()
}

// fixture is an Authorizer of the authorizers Node and RBAC, and of webhooks by name.
type fixture struct {
	*Authorizer
	node, rbac *fake
	webhooks   map[string]*fake
	kubeconfig string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{node: &fake{}, rbac: &fake{decision: auth.Allow}, webhooks: map[string]*fake{}, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(f.kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.Authorizer = New(Options{
		Types:       []string{"Node", "RBAC", "Webhook", "AlwaysAllow"},
		Authorizers: map[string]auth.Authorizer{"Node": f.node, "RBAC": f.rbac},
		NewWebhook: func(name string, _ *apiserver.WebhookConfiguration) (Webhook, error) {
			if name == "broken" {
				return nil, errors.New("no kubeconfig")
			}
			f.webhooks[name] = &fake{decision: auth.Deny}
			return f.webhooks[name], nil
		},
	})
	return f
}

// file is a configuration with some authorizers: types, or names of webhooks.
func (f *fixture) file(authorizers ...string) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n")
	for _, a := range authorizers {
		if slices.Contains(f.opts.Types, a) {
			fmt.Fprintf(&b, "- {type: %s, name: %s}\n", a, strings.ToLower(a))
			continue
		}
		fmt.Fprintf(&b, "- {type: Webhook, name: %s, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, "+
			"failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}, matchConditions: [{expression: \"has(request.resourceAttributes)\"}]}}\n", a, f.kubeconfig)
	}
	return []byte(b.String())
}

func (f *fixture) decide(t *testing.T) auth.Decision {
	t.Helper()
	decision, _, err := f.Authorize(t.Context(), auth.Attributes{})
	if err != nil {
		t.Error(err)
	}
	return decision
}

// TestLoad: the authorizers are asked in the order of the file that was loaded last; one
// that cannot be used changes nothing.
func TestLoad(t *testing.T) {
	f := newFixture(t)
	if err := f.Load(f.file("Node", "RBAC", "hook")); err != nil || f.decide(t) != auth.Allow {
		t.Fatalf("RBAC first: %d, %v", f.decide(t), err)
	}
	if err := f.Load(f.file("Node", "hook", "RBAC")); err != nil || f.decide(t) != auth.Deny {
		t.Errorf("the webhook first: %d, %v", f.decide(t), err)
	}
	for want, file := range map[string][]byte{
		"the file is empty":                                             nil,
		"kind must be AuthorizationConfiguration":                       []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"),
		"unknown field \"authorizers[0].names\"":                        []byte(strings.Replace(string(f.file("Node", "RBAC")), "name:", "names:", 1)),
		"authorizers: RBAC was in the file when the server started":     f.file("Node"),
		"authorizers[2].type: AlwaysAllow was not in the file":          f.file("Node", "RBAC", "AlwaysAllow"),
		"authorizers[1].type: Duplicate value: \"Node\"":                f.file("Node", "Node"),
		"authorizers[0].type: Unsupported value: \"ABAC\"":              []byte(strings.Replace(string(f.file("Node")), "Node", "ABAC", 1)),
		"authorizers[2].webhook: no kubeconfig":                         f.file("Node", "RBAC", "broken"),
		"authorizers[0].matchConditions[0].expression: Invalid value":   []byte(strings.Replace(string(f.file("hook", "Node", "RBAC")), "has(request", "had(request", 1)),
		"authorizers[0].connectionInfo.kubeConfigFile: Invalid value":   []byte(strings.Replace(string(f.file("hook", "Node", "RBAC")), f.kubeconfig, "missing", 1)),
		"authorizers[0].connectionInfo.type: Unsupported value":         []byte(strings.Replace(string(f.file("hook", "Node", "RBAC")), "{type: KubeConfigFile, kubeConfigFile: "+f.kubeconfig+"}", "{type: InClusterConfig}", 1)),
		"authorizers[0].timeout: Invalid value: \"1m0s\": must be > 0s": []byte(strings.Replace(string(f.file("hook", "Node", "RBAC")), "timeout: 3s", "timeout: 1m", 1)),
		"authorizers[0].failurePolicy: Unsupported value: \"Ignore\"":   []byte(strings.Replace(string(f.file("hook", "Node", "RBAC")), "Policy: Deny", "Policy: Ignore", 1)),
	} {
		if err := f.Load(file); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if f.decide(t) != auth.Deny {
		t.Error("a file that cannot be used counts")
	}
	types, err := Types(f.file("one", "RBAC", "two"), f.opts.Types)
	if err != nil || !slices.Equal(types, []string{"Webhook", "RBAC"}) {
		t.Errorf("%q, %v", types, err)
	}
}

// TestCheckOrder: a file with an order that is refused changes nothing.
func TestCheckOrder(t *testing.T) {
	f := newFixture(t)
	f.opts.CheckOrder = func(types []string) error {
		if slices.Index(types, "Webhook") < slices.Index(types, "RBAC") {
			return errors.New("the webhook is first")
		}
		return nil
	}
	if err := f.Load(f.file("RBAC", "one", "Node", "two")); err != nil {
		t.Error(err)
	}
	if err := f.Load(f.file("Node", "one", "RBAC", "two")); err == nil || err.Error() != "the webhook is first" || f.decide(t) != auth.Allow {
		t.Errorf("%v, and %d is decided", err, f.decide(t))
	}
}

// TestChanges: another file, and the changes of the authorizers in it, have watches
// decided about again; those of authorizers that left it do not.
func TestChanges(t *testing.T) {
	f := newFixture(t)
	var changes atomic.Int32
	defer f.OnChange(func(string) { changes.Add(1) })()
	expect := func(what string, want int32) {
		t.Helper()
		if got := changes.Swap(0); got != want {
			t.Errorf("%s: %d changes", what, got)
		}
	}
	if err := f.Load(f.file("Node", "RBAC", "one")); err != nil {
		t.Fatal(err)
	}
	expect("a file", 1)
	f.rbac.Notify()
	f.webhooks["one"].Notify()
	expect("two authorizers", 2)
	one := f.webhooks["one"]
	if err := f.Load(f.file("Node", "RBAC", "two")); err != nil {
		t.Fatal(err)
	}
	expect("another file", 1)
	one.Notify()
	expect("a webhook that is not in the file", 0)
	f.rbac.Notify()
	expect("RBAC", 1)
	if err := f.Load(f.file("Node")); err == nil {
		t.Error("a file without RBAC counts")
	}
	expect("a file that cannot be used", 0)
}

// TestRun: the webhooks of the file that counts run, and no others.
func TestRun(t *testing.T) {
	f := newFixture(t)
	if err := f.Load(f.file("Node", "RBAC", "one")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		// Its channels belong to the bubble.
		if err := f.Load(f.file("Node", "RBAC", "one")); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Run(ctx)
		}()
		synctest.Wait()
		one := f.webhooks["one"]
		if one.running.Load() != 1 {
			t.Error("the webhook does not run")
		}
		if err := f.Load(f.file("Node", "two", "RBAC", "three")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if one.running.Load() != 0 || f.webhooks["two"].running.Load() != 1 || f.webhooks["three"].running.Load() != 1 {
			t.Error("after a reload, others run than those of the file")
		}
		cancel()
		<-done
		if f.webhooks["two"].running.Load() != 0 {
			t.Error("a webhook runs on")
		}
	})
}
