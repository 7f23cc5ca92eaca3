package scheme_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

// Every kind that client-go knows has the same kind here, and those that are listed
// somewhere have a resource of the real name.
func TestBuiltinKindsAreThoseOfClientGo(t *testing.T) {
	types, checked := clientgo.Scheme.AllKnownTypes(), map[string]bool{}
	for gvk, typ := range types {
		if !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			continue // of metav1, registered in each group
		}
		m, err := scheme.Default.ByType(reflect.PointerTo(typ))
		if err != nil || m.Kind != gvk {
			t.Errorf("%v: got %v, %v", typ, m.Kind, err)
		}
		want, listed := wiretest.Plurals[gvk.Kind]
		_, hasList := types[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		switch {
		case hasList && !listed:
			t.Errorf("%v has a list and no entry in the table of plurals", gvk)
		case !hasList || gvk.Kind == "Eviction" && gvk.Group == "policy":
		case m.Resource != want || m.Scope == "":
			t.Errorf("%v: resource %q, scope %q, want %q", gvk, m.Resource, m.Scope, want)
		default:
			checked[gvk.Kind] = true
		}
		if m.Resource == "" {
			continue
		}
		if by, ok := scheme.Default.ByKind(gvk); !ok || by != m {
			t.Errorf("%v by kind: %v", gvk, by)
		}
		if by, ok := scheme.Default.ByResource(m.GroupVersionResource()); !ok || by != m {
			t.Errorf("%v by resource: %v", gvk, by)
		}
	}
	for kind := range wiretest.Plurals {
		if !checked[kind] {
			t.Errorf("%s is not in client-go's scheme: is its name right?", kind)
		}
	}
}

var clientType = regexp.MustCompile(`(?ms)^// \+genclient\n((?:^//[^\n]*\n|^\n)*)^type (\w+) struct \{\n`)

// The scopes are those that the sources of k8s.io/api say to the generator of
// clients.
func TestBuiltinScopesAreThoseOfTheSources(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	root, found := strings.TrimSpace(string(dir)), 0
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "types.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		path, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range clientType.FindAllStringSubmatch(string(source), -1) {
			tags, kind := match[1], match[2]
			if strings.Contains(tags, "+genclient:noVerbs") {
				continue // not served as a resource
			}
			found++
			want := scheme.Namespaced
			if strings.Contains(tags, "+genclient:nonNamespaced") {
				want = scheme.Cluster
			}
			typ := typeOf("k8s.io/api/"+path, kind)
			if typ == nil {
				t.Errorf("%s.%s is not in client-go's scheme", path, kind)
				continue
			}
			m, err := scheme.Default.ByType(typ)
			unnamed := strings.Contains(tags, "+genclient:onlyVerbs=create")
			if err != nil || m.Resource == "" || m.Scope != want || m.Unnamed != unnamed {
				t.Errorf("%s %s: got %+v, %v; want scope %s, unnamed %v", path, kind, m, err, want, unnamed)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d kinds found in %s", found, root)
	}
}

// typeOf finds a type of client-go's scheme by its package and name.
func typeOf(path, name string) reflect.Type {
	for _, typ := range clientgo.Scheme.AllKnownTypes() {
		if typ.PkgPath() == path && typ.Name() == name {
			return reflect.PointerTo(typ)
		}
	}
	return nil
}

type widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (w *widget) DeepCopyObject() runtime.Object { c := *w; return &c }

type gadget struct{ widget }

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func TestRegister(t *testing.T) {
	s := scheme.New()
	if _, err := scheme.For[*widget](s); !errors.Is(err, scheme.ErrNotRegistered) || !strings.Contains(err.Error(), "scheme.Register[*scheme_test.widget]") {
		t.Errorf("not registered: %v", err)
	}
	widgets := scheme.Mapping{Kind: widgetKind, Scope: scheme.Namespaced}
	for range 2 { // the same twice is fine
		if err := scheme.Register[*widget](s, widgets); err != nil {
			t.Fatal(err)
		}
	}
	m, err := scheme.For[*widget](s)
	if err != nil || m.GroupVersionResource().String() != "example.com/v1, Resource=widgets" {
		t.Errorf("got %v, %v", m, err)
	}
	if by, ok := s.ByKind(widgetKind); !ok || by != m {
		t.Errorf("by kind: %v", by)
	}
	if by, ok := s.ByResource(m.GroupVersionResource()); !ok || by != m {
		t.Errorf("by resource: %v", by)
	}
	if kind, err := s.KindOf(&widget{}); err != nil || kind != widgetKind {
		t.Errorf("kind of an object: %v, %v", kind, err)
	}
	if _, err := scheme.For[*widget](nil); err == nil {
		t.Error("it is in the default scheme, too")
	}
}

func TestRegisterRefuses(t *testing.T) {
	s := scheme.New()
	if err := scheme.Register[*widget](s, scheme.Mapping{Kind: widgetKind, Scope: scheme.Cluster}); err != nil {
		t.Fatal(err)
	}
	other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	for want, err := range map[string]error{
		"scope Namespaced: it is registered as example.com/v1 Widget, resource widgets, scope Cluster": scheme.Register[*widget](s, scheme.Mapping{Kind: widgetKind, Scope: scheme.Namespaced}),
		"another Go type":            scheme.Register[*gadget](s, scheme.Mapping{Kind: widgetKind, Scope: scheme.Cluster}),
		"belongs to":                 scheme.Register[*gadget](s, scheme.Mapping{Kind: other, Resource: "widgets", Scope: scheme.Cluster}),
		"every scheme knows it as":   scheme.Register[*corev1.Pod](s, scheme.Mapping{Kind: other, Scope: scheme.Namespaced}),
		"Scope must be":              scheme.Register[*gadget](s, scheme.Mapping{Kind: other}),
		"needs a version and a kind": scheme.Register[*gadget](s, scheme.Mapping{Scope: scheme.Cluster}),
		"plural name in lower case":  scheme.Register[*gadget](s, scheme.Mapping{Kind: other, Resource: "Gadgets", Scope: scheme.Cluster}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(widgetKind)
	for _, test := range []struct {
		obj  runtime.Object
		want schema.GroupVersionKind
	}{
		{&appsv1.Deployment{}, appsv1.SchemeGroupVersion.WithKind("Deployment")},
		{&corev1.PodList{}, corev1.SchemeGroupVersion.WithKind("PodList")},
		{&corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Wrong"}}, corev1.SchemeGroupVersion.WithKind("Pod")},
		{&authorizationv1.SubjectAccessReview{}, authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview")},
		{&widget{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}}, widgetKind},
		{u, widgetKind},
	} {
		if got, err := scheme.Default.KindOf(test.obj); err != nil || got != test.want {
			t.Errorf("%T: got %v, %v", test.obj, got, err)
		}
	}
	for _, obj := range []runtime.Object{nil, &widget{}, &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}} {
		if got, err := scheme.Default.KindOf(obj); err == nil {
			t.Errorf("%T: got %v", obj, got)
		}
	}
}

// Without a name in URLs, the kind's plural is what CustomResourceDefinitions have, whose names controller-gen makes.
func TestPluralsOfKinds(t *testing.T) {
	type custom struct{ corev1.ConfigMap }
	for kind, want := range map[string]string{
		"Widget": "widgets", "Policy": "policies", "Class": "classes", "Gateway": "gateways", "ApiKey": "apikeys",
		"Mesh": "meshes", "Sandbox": "sandboxes", "Batch": "batches", "Proxy": "proxies",
	} {
		s := scheme.New()
		if err := scheme.Register[*custom](s, scheme.Mapping{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, Scope: scheme.Namespaced}); err != nil {
			t.Fatal(err)
		}
		if m, err := s.ByType(reflect.TypeFor[*custom]()); err != nil || m.Resource != want {
			t.Errorf("%s: %q, %v, want %q", kind, m.Resource, err, want)
		}
	}
}
