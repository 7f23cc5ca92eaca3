package webhook_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/webhook"
	"github.com/levelwire/levelwire/internal/pki"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	stable      = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cert"}
	alpha       = schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Cert"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// namesOf makes a list of the host of v1alpha1.
func namesOf(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	host, _, err := unstructured.NestedString(u.Object, "spec", "host")
	u.Object["spec"] = map[string]any{"names": []any{host}}
	return u, err
}

// hostOf takes the first name of v1.
func hostOf(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	names, _, err := unstructured.NestedStringSlice(u.Object, "spec", "names")
	u.Object["spec"] = map[string]any{"host": strings.Join(names, ",")}
	return u, err
}

// startWebhook runs a conversion webhook and returns its address and the
// authority of its certificate.
func startWebhook(t *testing.T) (url string, authority []byte, stop func() error) {
	t.Helper()
	dir := t.TempDir()
	issuer, err := pki.LoadOrCreateAuthority(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issuer.Serving(dir, []string{"localhost"}); err != nil {
		t.Fatal(err)
	}
	authority, err = os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := webhook.New(webhook.Options{
		Address: "localhost:0", CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key"),
		Handlers: map[string]http.Handler{"/convert": webhook.Convert(webhook.Between(alpha, stable, namesOf, hostOf))},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, controller.RunOptions{}, server) }()
	<-server.Started()
	_, port, _ := strings.Cut(server.Addr().String(), "]:")
	if port == "" {
		_, port, _ = strings.Cut(server.Addr().String(), ":")
	}
	stop = func() error { cancel(); return <-ended }
	return "https://localhost:" + port + "/convert", authority, stop
}

// define installs the definition of certs and waits until they are served.
func define(ctx context.Context, t *testing.T, c *client.Client, url string, authority []byte) {
	t.Helper()
	anything := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "certs.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "certs", "kind": "Cert"},
			"versions": []any{
				map[string]any{"name": "v1", "served": true, "storage": true, "schema": anything},
				map[string]any{"name": "v1alpha1", "served": true, "storage": false, "schema": anything},
			},
			"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"},
				"clientConfig":             map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(authority)},
			}},
		},
	}}
	if _, err := client.Dynamic(c, definitions).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	informer.Dynamic(factory, stable.GroupVersion().WithResource("certs"), informer.ListOptions{})
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil { // waits for a resource that is not served yet
		t.Fatal(err)
	}
}

// Both versions are written, read, listed and watched; the webhook converts.
func TestServerConvertsByTheWebhook(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	url, authority, stop := startWebhook(t)
	c := levelwiretest.Start(t).Client(client.Options{})
	define(ctx, t, c, url, authority)
	of := func(kind schema.GroupVersionKind) client.Resource[*unstructured.Unstructured] {
		return client.Dynamic(c, kind.GroupVersion().WithResource("certs")).Namespace("default")
	}
	written := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1alpha1", "kind": "Cert",
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"a": "b"}}, "spec": map[string]any{"host": "a.org"},
	}}
	if _, err := of(alpha).Create(ctx, written, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stored, err := of(stable).Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if names, _, _ := unstructured.NestedStringSlice(stored.Object, "spec", "names"); len(names) != 1 || names[0] != "a.org" || stored.GetLabels()["a"] != "b" {
		t.Errorf("stored %v", stored.Object)
	}
	create := func(name string) {
		t.Helper()
		if _, err := of(stable).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Cert", "metadata": map[string]any{"name": name}, "spec": map[string]any{"names": []any{"b.org", "c.org"}},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("b")
	list, err := of(alpha).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]string{}
	for _, u := range list.Items {
		hosts[u.GetName()], _, _ = unstructured.NestedString(u.Object, "spec", "host")
	}
	if hosts["a"] != "a.org" || hosts["b"] != "b.org,c.org" {
		t.Errorf("listed %v", hosts)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	create("c")
	if _, err := of(alpha).Get(ctx, "c", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "conversion webhook") {
		t.Errorf("without the webhook: %v", err)
	}
}
