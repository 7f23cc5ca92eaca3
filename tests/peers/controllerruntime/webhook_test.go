package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/levelwire/levelwire/tests/peers/program"
)

// The two versions of Loaf: v1 has a weight in grams, v2, which is stored, with its unit.
var (
	loafV1 = schema.GroupVersion{Group: "loaves.example.com", Version: "v1"}
	loafV2 = schema.GroupVersion{Group: "loaves.example.com", Version: "v2"}
)

// Loaf is v2.
type Loaf struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              LoafSpec `json:"spec,omitempty"`
}

type LoafSpec struct {
	Weight string `json:"weight,omitempty"`
	Flour  string `json:"flour,omitempty"`
}

func (l *Loaf) DeepCopyObject() runtime.Object {
	out := *l
	l.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// Hub implements conversion.Hub.
func (l *Loaf) Hub() {}

// OldLoaf is v1.
type OldLoaf struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldLoafSpec `json:"spec,omitempty"`
}

type OldLoafSpec struct {
	Grams int    `json:"grams,omitempty"`
	Flour string `json:"flour,omitempty"`
}

func (l *OldLoaf) DeepCopyObject() runtime.Object {
	out := *l
	l.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// ConvertTo implements conversion.Convertible.
func (l *OldLoaf) ConvertTo(hub conversion.Hub) error {
	to := hub.(*Loaf)
	to.ObjectMeta, to.Spec = l.ObjectMeta, LoafSpec{Weight: fmt.Sprintf("%dg", l.Spec.Grams), Flour: l.Spec.Flour}
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (l *OldLoaf) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Loaf)
	l.ObjectMeta, l.Spec.Flour = from.ObjectMeta, from.Spec.Flour
	_, err := fmt.Sscanf(from.Spec.Weight, "%dg", &l.Spec.Grams)
	return err
}

func addLoaves(types *runtime.Scheme) {
	types.AddKnownTypeWithName(loafV1.WithKind("Loaf"), &OldLoaf{})
	types.AddKnownTypes(loafV2, &Loaf{})
	metav1.AddToGroupVersion(types, loafV1)
	metav1.AddToGroupVersion(types, loafV2)
}

func loafDefinition() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "loaves." + loafV1.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: loafV1.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "loaves", Singular: "loaf", Kind: "Loaf", ListKind: "LoafList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false), version("v2", true)},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook:  &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"}},
			},
		},
	}
}

// loafRules are for v2 alone: writes of v1 reach them converted.
func loafRules() []registrationv1.RuleWithOperations {
	return []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.Create, registrationv1.Update},
		Rule:       registrationv1.Rule{APIGroups: []string{loafV2.Group}, APIVersions: []string{"v2"}, Resources: []string{"loaves"}},
	}}
}

func loafService(path string) registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{Service: &registrationv1.ServiceReference{Namespace: namespace, Name: "loaves", Path: &path}}
}

// loafWebhooks are the defaulter and the validator of v2.
type loafWebhooks struct{}

func (loafWebhooks) Default(_ context.Context, loaf *Loaf) error {
	if loaf.Spec.Flour == "" {
		loaf.Spec.Flour = "rye"
	}
	return nil
}

func (loafWebhooks) ValidateCreate(_ context.Context, loaf *Loaf) (admission.Warnings, error) {
	if loaf.Spec.Weight == "0g" {
		return nil, errors.New("a loaf weighs something")
	}
	return nil, nil
}

func (w loafWebhooks) ValidateUpdate(ctx context.Context, _, loaf *Loaf) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, loaf)
}

func (loafWebhooks) ValidateDelete(context.Context, *Loaf) (admission.Warnings, error) {
	return nil, nil
}

// TestWebhooks installs webhooks as envtest does, and runs a manager that defaults,
// validates and converts.
func TestWebhooks(t *testing.T) {
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	addLoaves(types)
	assets := filepath.Join(t.TempDir(), "assets")
	if out, err := exec.Command(program.Build(t), "envtest-assets", assets).CombinedOutput(); err != nil {
		t.Fatalf("levelwire envtest-assets: %v\n%s", err, out)
	}
	meta := metav1.ObjectMeta{Name: "loaves"}
	effects := registrationv1.SideEffectClassNone
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, Scheme: types, CRDs: []*apiextensionsv1.CustomResourceDefinition{loafDefinition()},
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			MutatingWebhooks: []*registrationv1.MutatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: []registrationv1.MutatingWebhook{{
				Name: "default.loaves.example.com", ClientConfig: loafService("/mutate-loaves-example-com-v2-loaf"), Rules: loafRules(),
				SideEffects: &effects, AdmissionReviewVersions: []string{"v1"},
			}}}},
			ValidatingWebhooks: []*registrationv1.ValidatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: []registrationv1.ValidatingWebhook{{
				Name: "validate.loaves.example.com", ClientConfig: loafService("/validate-loaves-example-com-v2-loaf"), Rules: loafRules(),
				SideEffects: &effects, AdmissionReviewVersions: []string{"v1"},
			}}}},
		},
	}
	if _, err := environment.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	relay(t, environment)
	config := environment.Config
	installed := environment.WebhookInstallOptions
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: types, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: installed.LocalServingHost, Port: installed.LocalServingPort, CertDir: installed.LocalServingCertDir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewWebhookManagedBy(manager, &Loaf{}).WithDefaulter(loafWebhooks{}).WithValidator(loafWebhooks{}).Complete(); err != nil {
		t.Fatal(err)
	}
	run(t, manager)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	outside, err := client.New(config, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	loaf := &Loaf{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "first"}, Spec: LoafSpec{Weight: "500g"}}
	await(ctx, t, func() error { return outside.Create(ctx, loaf.DeepCopyObject().(*Loaf)) }) // until the manager serves
	old := &OldLoaf{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "second"}, Spec: OldLoafSpec{Grams: 750}}
	if err := outside.Create(ctx, old); err != nil {
		t.Fatal(err)
	}
	if old.Spec.Flour != "rye" || old.Spec.Grams != 750 {
		t.Errorf("created %+v", old.Spec)
	}
	for name, weight := range map[string]string{"first": "500g", "second": "750g"} {
		got := &Loaf{}
		if err := outside.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, got); err != nil || got.Spec != (LoafSpec{Weight: weight, Flour: "rye"}) {
			t.Errorf("%s: %+v %v", name, got.Spec, err)
		}
	}
	nothing := &OldLoaf{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "third"}}
	if err := outside.Create(ctx, nothing); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a loaf weighs something") {
		t.Errorf("%v, want a 403 of the validator", err)
	}
}
