package builtin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/randfill"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// each runs a test for every built-in resource.
func each(t *testing.T, f func(t *testing.T, r *resource.Resource)) {
	t.Helper()
	for _, r := range builtin.Table().All() {
		t.Run(strings.Trim(r.Group+"."+r.Version+"."+r.Plural, "."), func(t *testing.T) { f(t, r) })
	}
}

// The definitions of custom resources are in a scheme of their own.
var _ = apiextensionsv1.AddToScheme(scheme.Scheme)

// The same is true of API services.
var _ = apiregistrationv1.AddToScheme(scheme.Scheme)

func TestNewMatchesScheme(t *testing.T) {
	each(t, func(t *testing.T, r *resource.Resource) {
		for gvk, made := range map[schema.GroupVersionKind]any{
			r.GroupVersionKind():                  r.New(),
			r.GroupVersion().WithKind(r.ListKind): r.NewList(),
		} {
			want, err := scheme.Scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			if reflect.TypeOf(made) != reflect.TypeOf(want) {
				t.Errorf("%s is made as %T, the scheme has %T", gvk, made, want)
			}
		}
	})
}

func TestNamesAndPrefixesAreUnique(t *testing.T) {
	names, prefixes := map[string]string{}, map[string]string{}
	claim := func(taken map[string]string, key, who string) {
		if other, ok := taken[key]; ok {
			t.Errorf("%s is claimed by %s and %s", key, other, who)
		}
		taken[key] = who
	}
	for _, r := range builtin.Table().All() {
		who := r.GroupVersionResource().String()
		own := map[string]bool{} // Endpoints is its own singular and plural
		for _, name := range append([]string{r.Plural, r.Singular, r.Kind}, r.ShortNames...) {
			if !own[name] {
				claim(names, r.Group+"/"+r.Version+" "+name, who)
			}
			own[name] = true
		}
		if r.Storage == nil {
			claim(prefixes, r.StorePrefix, who)
		}
	}
	for a := range prefixes {
		for b := range prefixes {
			if a != b && strings.HasPrefix(a, b) {
				t.Errorf("%s is inside %s", a, b)
			}
		}
	}
}

func TestStoreLayoutIsKubernetes(t *testing.T) {
	for plural, prefix := range map[string]string{
		"pods": "/registry/pods/", "nodes": "/registry/minions/", "services": "/registry/services/specs/",
		"endpoints": "/registry/services/endpoints/", "replicationcontrollers": "/registry/controllers/",
		"ingresses": "/registry/ingress/", "deployments": "/registry/deployments/", "leases": "/registry/leases/",
		"events": "/registry/events/", "storageclasses": "/registry/storageclasses/",
	} {
		found := slices.ContainsFunc(builtin.Resources(), func(r *resource.Resource) bool {
			return r.Plural == plural && r.StorePrefix == prefix
		})
		if !found {
			t.Errorf("%s are not stored in %s", plural, prefix)
		}
	}
}

// filled returns an object of the kind with everything set that survives a
// round trip through JSON.
func filled(t testing.TB, r *resource.Resource, seed int64) resource.Object {
	t.Helper()
	fill := randfill.NewWithSeed(seed).NilChance(.4).NumElements(1, 2).MaxDepth(12).Funcs(fillFuncs()...)
	obj := r.New()
	fill.Fill(obj)
	namespace := ""
	if r.Namespaced {
		namespace = "ns"
	}
	meta := metav1.ObjectMeta{
		Name: "some-name", Namespace: namespace, UID: types.UID("0d1b2c"), Labels: map[string]string{"app": "a<b>\"\u00e9", "tier": "x"},
		Annotations: map[string]string{"note": "line\nbreak & more"}, ResourceVersion: "99",
	}
	reflect.ValueOf(obj).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(meta))
	if h, ok := obj.(*autoscalingv1.HorizontalPodAutoscaler); ok {
		percent := int32(70)
		// What the stored form would complete by itself.
		h.Spec.TargetCPUUtilizationPercentage, h.Status.CurrentCPUUtilizationPercentage = &percent, nil
	}
	obj.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	return obj
}

func TestRoundTripOfEveryKind(t *testing.T) {
	each(t, func(t *testing.T, r *resource.Resource) {
		for seed := range int64(20) {
			checkRoundTrip(t, r, filled(t, r, seed))
		}
	})
}

func checkRoundTrip(t *testing.T, r *resource.Resource, obj resource.Object) {
	t.Helper()
	body, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	sent, gvk, strict, err := r.DecodeBody(resource.MediaTypeJSON, body)
	if err != nil || len(strict) > 0 || gvk != r.GroupVersionKind() {
		t.Fatalf("DecodeBody: %v, %v, %v", gvk, strict, err)
	}
	before := sent.DeepCopyObject()
	stored, err := r.Encode(t.Context(), sent)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(before, sent) {
		t.Error("Encode changed its argument")
	}
	if bytes.Contains(stored, []byte("resourceVersion\":\"99")) && !bytes.Contains(stored, []byte("involvedObject")) {
		t.Errorf("stored form has a resourceVersion: %s", stored)
	}
	cached, err := r.WithRevision(stored, 123)
	if err != nil {
		t.Fatal(err)
	}
	if head := fmt.Sprintf(`%s"metadata":{"resourceVersion":"123","name":"some-name"`, r.Stored().Prefix()); !bytes.HasPrefix(cached, []byte(head)) {
		t.Errorf("cached form begins with %.120s, want %s", cached, head)
	}
	if !json.Valid(cached) {
		t.Errorf("cached form is not JSON: %s", cached)
	}
	attributes, err := r.Attributes(cached)
	if err != nil {
		t.Fatal(err)
	}
	if attributes.Name != sent.GetName() || attributes.Namespace != sent.GetNamespace() || attributes.UID != string(sent.GetUID()) ||
		attributes.Labels.Get("app") != sent.GetLabels()["app"] || len(attributes.Labels) != 2 {
		t.Errorf("attributes %+v", attributes)
	}
	got, err := r.Decode(t.Context(), cached)
	if err != nil {
		t.Fatal(err)
	}
	want := sent.DeepCopyObject().(resource.Object)
	want.SetResourceVersion("123")
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("decoded %#v\nwant %#v", got, want)
	}
	checkProtobuf(t, r, sent)
}

func checkProtobuf(t *testing.T, r *resource.Resource, obj resource.Object) {
	t.Helper()
	encoded, err := resource.MarshalProtobuf(obj, r.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	got, gvk, _, err := r.DecodeBody(resource.MediaTypeProtobuf, encoded)
	if err != nil || gvk != r.GroupVersionKind() {
		t.Fatalf("DecodeBody of protobuf: %v, %v", gvk, err)
	}
	if !equality.Semantic.DeepEqual(got, obj) {
		t.Errorf("protobuf round trip: %#v\nwant %#v", got, obj)
	}
	if r.Storage != nil {
		return
	}
	cached, err := r.WithRevision(encoded, 7) // as if a kube-apiserver had stored it
	if err != nil {
		t.Fatal(err)
	}
	stored, err := r.Encode(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := r.WithRevision(stored, 7)
	if err != nil {
		t.Fatal(err)
	}
	one, err := r.Decode(t.Context(), cached)
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.Decode(t.Context(), fromJSON)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(one, two) {
		t.Errorf("cached form from protobuf %s\nfrom JSON %s", cached, fromJSON)
	}
}

// TestStrategiesSurviveAnything runs every strategy over objects full of
// nonsense, and over empty ones: complaints are fine, panics are not.
func TestStrategiesSurviveAnything(t *testing.T) {
	each(t, func(t *testing.T, r *resource.Resource) {
		objects := []resource.Object{r.New()}
		for seed := range int64(30) {
			objects = append(objects, filled(t, r, seed))
		}
		for i, obj := range objects {
			old := objects[(i+1)%len(objects)].DeepCopyObject().(resource.Object)
			runStrategy(r, obj.DeepCopyObject().(resource.Object), old)
			if r.Scale != nil {
				if err := r.Scale.Set(obj, 5); err != nil {
					t.Error(err)
				}
				if spec, _, _, err := r.Scale.Get(obj); err == nil && *spec != 5 {
					t.Errorf("scaled to 5, got %d", *spec)
				}
			}
		}
	})
}

func runStrategy(r *resource.Resource, obj, old resource.Object) {
	s := r.Strategy
	if s.Default != nil {
		s.Default(obj)
	}
	if s.PrepareForCreate != nil {
		s.PrepareForCreate(obj)
	}
	validateNew(r, obj)
	if s.PrepareForUpdate != nil {
		s.PrepareForUpdate(obj, old)
	}
	if s.PrepareForStatusUpdate != nil {
		s.PrepareForStatusUpdate(obj, old)
	}
	validateChanged(r, obj, old)
	if s.Graceful != nil {
		s.Graceful(obj, nil)
	}
}

// TestDefaultsAreStable: completing a complete object changes nothing, or
// every read and write would.
func TestDefaultsAreStable(t *testing.T) {
	each(t, func(t *testing.T, r *resource.Resource) {
		if r.Strategy.Default == nil {
			return
		}
		for seed := range int64(20) {
			obj := filled(t, r, seed)
			r.Strategy.Default(obj)
			once := obj.DeepCopyObject()
			r.Strategy.Default(obj)
			if !equality.Semantic.DeepEqual(once, obj) {
				t.Errorf("defaults applied twice: %#v\nonce %#v", obj, once)
			}
		}
	})
}
