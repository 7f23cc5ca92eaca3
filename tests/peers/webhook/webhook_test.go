package webhook_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/client/webhook"
	"github.com/levelwire/levelwire/internal/pki"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// serve runs a webhook server until the test ends, and returns its address and
// the authority of its certificate.
func serve(t *testing.T, handlers map[string]http.Handler) (address string, authority []byte) {
	t.Helper()
	dir := t.TempDir()
	issuer, err := pki.LoadOrCreateAuthority(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issuer.Serving(dir, []string{"localhost"}); err != nil {
		t.Fatal(err)
	}
	if authority, err = os.ReadFile(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	server, err := webhook.New(webhook.Options{
		Address: "localhost:0", CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key"), Handlers: handlers,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-server.Started()
	_, port, err := net.SplitHostPort(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "https://localhost:" + port, authority
}

// plugin is what the admission plugins of kube-apiserver need.
type plugin interface {
	SetAuthenticationInfoResolverWrapper(webhookutil.AuthenticationInfoResolverWrapper)
	SetServiceResolver(webhookutil.ServiceResolver)
	SetExternalKubeClientSet(kubernetes.Interface)
	SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	ValidateInitialization() error
}

// start starts a plugin with the webhook configurations.
func start(t *testing.T, p plugin, configurations ...runtime.Object) {
	t.Helper()
	stop := make(chan struct{})
	clientset := fake.NewClientset(append(configurations, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})...)
	factory := informers.NewSharedInformerFactory(clientset, 0)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	p.SetAuthenticationInfoResolverWrapper(anonymous)
	p.SetServiceResolver(webhookutil.NewDefaultServiceResolver())
	p.SetExternalKubeClientSet(clientset)
	p.SetExternalKubeInformerFactory(factory)
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
}

func anonymous(resolver webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
	return resolver
}

func rules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
}

// request is a client's creation of a ConfigMap, or its deletion if there is no
// new one.
func request(operation admission.Operation, obj, old *corev1.ConfigMap) admission.Attributes {
	var now, before runtime.Object
	if obj != nil {
		now = obj
	}
	if old != nil {
		before = old
	}
	return admission.NewAttributesRecord(now, before, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "ns", "a",
		corev1.SchemeGroupVersion.WithResource("configmaps"), "", operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "jane"})
}

func TestMutatingPluginAppliesThePatch(t *testing.T) {
	address, authority := serve(t, map[string]http.Handler{"/mutate": webhook.Mutate(func(_ context.Context, r *webhook.Request[*corev1.ConfigMap]) error {
		r.Object.Labels = map[string]string{"by": r.Admission.UserInfo.Username}
		r.Object.Data["new/key"] = "b"
		delete(r.Object.Data, "old")
		return nil
	})})
	url := address + "/mutate"
	p, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	start(t, p, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "mutate.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority}, Rules: rules(),
		FailurePolicy: new(admissionregistrationv1.Fail), MatchPolicy: new(admissionregistrationv1.Equivalent), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: new(int32(10)), AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ReinvocationPolicy: new(admissionregistrationv1.NeverReinvocationPolicy),
	}}})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"key": "a", "old": "c"}}
	attributes := request(admission.Create, obj, nil)
	if err := p.Admit(t.Context(), attributes, admission.NewObjectInterfacesFromScheme(scheme.Scheme)); err != nil {
		t.Fatal(err)
	}
	got := attributes.GetObject().(*corev1.ConfigMap)
	if got.Labels["by"] != "jane" || got.Data["new/key"] != "b" || got.Data["key"] != "a" || len(got.Data) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestValidatingPluginUnderstandsTheAnswer(t *testing.T) {
	address, authority := serve(t, map[string]http.Handler{"/validate": webhook.Validate(func(_ context.Context, r *webhook.Request[*corev1.ConfigMap]) error {
		switch {
		case r.Operation == "DELETE" && r.Old.Data["keep"] != "":
			return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, r.Old.Name, errors.New("it is kept"))
		case r.Operation == "DELETE":
			return nil
		case r.Object.Data["panic"] != "":
			panic("a bug")
		case len(r.Object.Data) == 0:
			return errors.New("it is empty")
		}
		r.Audit("seen", "yes")
		return nil
	})})
	url := address + "/validate"
	p, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	start(t, p, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "validate.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority}, Rules: rules(),
		FailurePolicy: new(admissionregistrationv1.Ignore), MatchPolicy: new(admissionregistrationv1.Equivalent), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: new(int32(10)), AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
	}}})
	object := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: data}
	}
	for _, c := range []struct {
		name       string
		attributes admission.Attributes
		want       string // of the error; "": none
		code       int32
	}{
		{"allowed", request(admission.Create, object(map[string]string{"a": "b"}), nil), "", 0},
		{"denied", request(admission.Create, object(nil), nil), `admission webhook "validate.example.com" denied the request: it is empty`, http.StatusForbidden},
		{"denied with a status", request(admission.Delete, nil, object(map[string]string{"keep": "me"})), "it is kept", http.StatusConflict},
		{"a deletion is allowed", request(admission.Delete, nil, object(nil)), "", 0},
		{"failed, and the policy is Ignore", request(admission.Create, object(map[string]string{"panic": "please"}), nil), "", 0},
	} {
		err := p.Validate(t.Context(), c.attributes, admission.NewObjectInterfacesFromScheme(scheme.Scheme))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var status apierrors.APIStatus
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &status) || status.Status().Code != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestConverterUnderstandsTheAnswer(t *testing.T) {
	kind := func(version string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Cert"}
	}
	rename := func(from, to string) func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			value, found, err := unstructured.NestedString(u.Object, "spec", from)
			if !found || err != nil {
				return nil, errors.Join(err, errors.New("there is no "+from))
			}
			u.Object["spec"] = map[string]any{to: value}
			return u, nil
		}
	}
	address, authority := serve(t, map[string]http.Handler{"/convert": webhook.Convert(webhook.Between(kind("v1alpha1"), kind("v1"), rename("host", "name"), rename("name", "host")))})
	url := address + "/convert"
	resolver, err := webhookutil.NewDefaultAuthenticationInfoResolver("")
	if err != nil {
		t.Fatal(err)
	}
	factory, err := conversion.NewCRConverterFactory(webhookutil.NewDefaultServiceResolver(), func(webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver { return resolver })
	if err != nil {
		t.Fatal(err)
	}
	converter, _, err := factory.NewConverter(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "certs.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v1alpha1"}},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: authority},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	object := func(spec map[string]any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1alpha1", "kind": "Cert",
			"metadata": map[string]any{"name": "a", "namespace": "ns", "uid": "u", "labels": map[string]any{"a": "b"}, "generation": int64(3)}, "spec": spec,
		}}
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1alpha1", "kind": "CertList"},
		Items: []unstructured.Unstructured{object(map[string]any{"host": "a.org"}), object(map[string]any{"host": "b.org"})}}
	converted, err := converter.ConvertToVersion(list, kind("v1").GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	items := converted.(*unstructured.UnstructuredList).Items
	for n, want := range []string{"a.org", "b.org"} {
		name, _, _ := unstructured.NestedString(items[n].Object, "spec", "name")
		if name != want || items[n].GetAPIVersion() != "example.com/v1" || items[n].GetUID() != "u" || items[n].GetGeneration() != 3 || items[n].GetLabels()["a"] != "b" {
			t.Errorf("%v", items[n].Object)
		}
	}
	bad := object(map[string]any{})
	if _, err := converter.ConvertToVersion(&bad, kind("v1").GroupVersion()); err == nil || !strings.Contains(err.Error(), "there is no host") {
		t.Errorf("got %v", err)
	}
}
