package registry_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestJSONOfTheSameValueChangesNothing: clients in other languages than Go write the JSON that they have
// read with spaces, escapes, and members in an order of their own.
func TestJSONOfTheSameValueChangesNothing(t *testing.T) {
	const written, again = `{"b":"é<","a":[1,{}]}`, `{ "a": [1, { }], "b": "\u00e9\u003c" }`
	opaque := func(text string) resourcev1.DeviceConfiguration {
		return resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "example.com", Parameters: runtime.RawExtension{Raw: []byte(text)}}}
	}
	claim := func(text string) resourcev1.DeviceClaim {
		return resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "c"}}},
			Config:   []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: opaque(text)}},
		}
	}
	meta := metav1.ObjectMeta{Name: "o"}
	definition := func(text string) apiextensionsv1.CustomResourceDefinitionSpec {
		preserves := true
		return apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "os", Singular: "o", Kind: "O", ListKind: "OList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Example: &apiextensionsv1.JSON{Raw: []byte(text)},
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"p": {
						Type: "object", XPreserveUnknownFields: &preserves,
						Default: &apiextensionsv1.JSON{Raw: []byte(text)}, Enum: []apiextensionsv1.JSON{{Raw: []byte(text)}},
					}},
				}},
			}},
		}
	}
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	for _, test := range []struct {
		group, plural, namespace string
		made                     resource.Object
		change                   registry.Updater
	}{
		{"apps", "controllerrevisions", "default", &appsv1.ControllerRevision{ObjectMeta: meta, Data: runtime.RawExtension{Raw: []byte(written)}},
			changing(func(c *appsv1.ControllerRevision) { c.Data.Raw = []byte(again) })},
		{"resource.k8s.io", "resourceclaims", "default", &resourcev1.ResourceClaim{ObjectMeta: meta, Spec: resourcev1.ResourceClaimSpec{Devices: claim(written)}},
			changing(func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Config[0].DeviceConfiguration = opaque(again) })},
		{"resource.k8s.io", "resourceclaimtemplates", "default", &resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: claim(written)}}},
			changing(func(c *resourcev1.ResourceClaimTemplate) {
				c.Spec.Spec.Devices.Config[0].DeviceConfiguration = opaque(again)
			})},
		{"resource.k8s.io", "deviceclasses", "", &resourcev1.DeviceClass{ObjectMeta: meta, Spec: resourcev1.DeviceClassSpec{Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: opaque(written)}}}},
			changing(func(c *resourcev1.DeviceClass) { c.Spec.Config[0].DeviceConfiguration = opaque(again) })},
		{"apiextensions.k8s.io", "customresourcedefinitions", "", &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "os.example.com"}, Spec: definition(written)},
			changing(func(c *apiextensionsv1.CustomResourceDefinition) {
				c.Spec.Versions[0].Schema = definition(again).Versions[0].Schema
			})},
	} {
		r, ok := f.Lookup(test.group, "v1", test.plural)
		if !ok {
			t.Fatalf("%s are not served", test.plural)
		}
		made, err := r.Create(t.Context(), test.namespace, test.made, registry.WriteOptions{})
		if err != nil {
			t.Fatalf("%s: %v", test.plural, err)
		}
		replaced, err := r.Update(t.Context(), test.namespace, made.Object.GetName(), test.change, registry.UpdateOptions{})
		if err != nil {
			t.Errorf("%s: %v", test.plural, err)
			continue
		}
		if replaced.Revision != made.Revision || replaced.Object.GetGeneration() != made.Object.GetGeneration() {
			t.Errorf("%s: written anew, with generation %d after %d", test.plural, replaced.Object.GetGeneration(), made.Object.GetGeneration())
		}
	}
}
