package discovery_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func define(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	anything := true
	_, err := client.For[*apiextensionsv1.CustomResourceDefinition](c).Create(ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", ShortNames: []string{"wg"}, Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// established waits for the definition to be served.
func established(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	widgets := informer.Dynamic(factory, widgetKind.GroupVersion().WithResource("widgets"), informer.ListOptions{})
	factory.Start(ctx)
	select {
	case <-widgets.Synced():
	case <-ctx.Done():
		t.Fatal("widgets are not served")
	}
}

// A kind is found as soon as it is served, by a Mapper that has looked before.
func TestKindsThatComeAndGo(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	m := discovery.NewMapper(c, discovery.Options{})
	deploy, err := m.ByName(ctx, "deploy")
	if err != nil || deploy.Mapping.Kind.Kind != "Deployment" || deploy.Mapping.Scope != scheme.Namespaced || !deploy.Supports("get", "watch") {
		t.Fatalf("deploy: %+v, %v", deploy, err)
	}
	if _, err := m.ByKind(ctx, widgetKind.GroupKind()); !meta.IsNoMatchError(err) {
		t.Fatalf("before it is defined: %v", err)
	}
	define(ctx, t, c)
	established(ctx, t, c)
	widgets, err := discovery.Dynamic(ctx, m, widgetKind.GroupKind().WithVersion(""))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	if _, err := widgets.Create(ctx, object, metav1.CreateOptions{}); err == nil {
		t.Error("a widget without a namespace: no error")
	}
	created, err := widgets.Namespace("default").Create(ctx, object, metav1.CreateOptions{})
	if err != nil || created.GroupVersionKind() != widgetKind {
		t.Errorf("created %v, %v", created, err)
	}
	if r, err := m.ByName(ctx, "wg"); err != nil || r.Mapping.Kind != widgetKind {
		t.Errorf("by its short name: %+v, %v", r, err)
	}
}

var _ controller.LeaderElectionRunnable = (*discovery.Mapper)(nil)

// A Mapper that runs beside controllers forgets a kind that is defined no more.
func TestRunInvalidates(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	define(ctx, t, c)
	established(ctx, t, c)
	m := discovery.NewMapper(c, discovery.Options{MinInterval: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(running, controller.RunOptions{}, m) }()
	if _, err := m.ByKind(ctx, widgetKind.GroupKind()); err != nil {
		t.Fatal(err)
	}
	if err := client.For[*apiextensionsv1.CustomResourceDefinition](c).Delete(ctx, "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := m.ByKind(ctx, widgetKind.GroupKind()); meta.IsNoMatchError(err) {
			break
		} else if err = errors.Join(err, ctx.Err()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
