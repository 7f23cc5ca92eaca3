package registry_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// keptByStatus has the kinds whose status does not carry all metadata, as the strategies of
// kube-apiserver 1.37 have them.
var keptByStatus = map[string]string{
	"deployments":                 "labels",
	"pods":                        "ownerReferences",
	"servicecidrs":                "all",
	"resourceclaims":              "all",
	"devicetaintrules":            "all",
	"volumeattachments":           "all",
	"csinodes":                    "all",
	"flowschemas":                 "all",
	"prioritylevelconfigurations": "all",
	"validatingadmissionpolicies": "all",
	"apiservices":                 "all",
	"podcertificaterequests":      "all",
	"storageversionmigrations":    "all",
}

// builtinFixture is a fixture of the kinds of Kubernetes, in which put stores an object
// that need not be valid.
func builtinFixture(t *testing.T, hooks ...registry.Admission) (f *fixture, put func(res *resource.Resource, change func(resource.Object)) registry.Registry) {
	f = newFixture(t, func(c *registry.Config) { c.Resources, c.Admission = builtin.Table(), append(c.Admission, hooks...) })
	return f, func(res *resource.Resource, change func(resource.Object)) registry.Registry {
		t.Helper()
		obj := res.New()
		obj.SetName("a")
		obj.SetUID("1")
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{ // or nothing would be recorded
			Manager: "creator", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: res.GroupVersion().String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:generateName":{}}}`),
		}})
		change(obj)
		if res.Strategy.Default != nil {
			res.Strategy.Default(obj)
		}
		if res.Namespaced {
			obj.SetNamespace("default")
		}
		stored, err := res.Encode(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Create(t.Context(), res.Stored().StorePrefix+res.Key(obj.GetNamespace(), "a"), stored, 0); err != nil {
			t.Fatal(err)
		}
		r, ok := f.Lookup(res.Group, res.Version, res.Plural)
		if !ok {
			t.Fatalf("%s are not served", res.Plural)
		}
		return r
	}
}

// withMetadata is an Updater that sets all metadata that clients set.
func withMetadata(current resource.Object) (resource.Object, error) {
	obj := current.DeepCopyObject().(resource.Object)
	obj.SetLabels(map[string]string{"new": "1"})
	obj.SetAnnotations(map[string]string{"new": "1"})
	obj.SetFinalizers([]string{"example.com/new"})
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u"}})
	return obj, nil
}

// written returns which of the metadata of withMetadata an object has, and which of them
// a manager owns.
func written(obj resource.Object) (has, owned string) {
	var list, owns []string
	for name, there := range map[string]bool{
		"labels": obj.GetLabels()["new"] != "", "annotations": obj.GetAnnotations()["new"] != "",
		"finalizers": len(obj.GetFinalizers()) > 0, "ownerReferences": len(obj.GetOwnerReferences()) > 0,
	} {
		if there {
			list = append(list, name)
		}
		if strings.Contains(owners(obj), `"f:`+name+`"`) {
			owns = append(owns, name)
		}
	}
	slices.Sort(list)
	slices.Sort(owns)
	return strings.Join(list, " "), strings.Join(owns, " ")
}

// TestStatusCarriesMetadata: a status carries the metadata that kube-apiserver lets the
// kind's status carry, and its writer owns what it has changed.
func TestStatusCarriesMetadata(t *testing.T) {
	for _, res := range builtin.Resources() {
		if !res.Status || res.Storage != nil {
			continue
		}
		t.Run(res.Plural, func(t *testing.T) {
			_, put := builtinFixture(t)
			r := put(res, func(resource.Object) {})
			namespace := ""
			if res.Namespaced {
				namespace = "default"
			}
			result, err := r.UpdateStatus(t.Context(), namespace, "a", withMetadata, registry.UpdateOptions{WriteOptions: by("m")})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, name := range []string{"annotations", "finalizers", "labels", "ownerReferences"} {
				if kept := keptByStatus[res.Plural]; kept != name && kept != "all" {
					want = append(want, name)
				}
			}
			has, owned := written(result.Object)
			if has != strings.Join(want, " ") || owned != has {
				t.Errorf("the status carried %q, of which its writer owns %q; want %q", has, owned, want)
			}
		})
	}
}

// TestOtherSubresourcesCarryMetadata: so do the finalizers of a namespace and the approval
// of a request, but not the subresources of pods.
func TestOtherSubresourcesCarryMetadata(t *testing.T) {
	const all = "annotations finalizers labels ownerReferences"
	for _, c := range []struct{ group, version, plural, subresource, want string }{
		{"", "v1", "namespaces", "finalize", all},
		{"certificates.k8s.io", "v1", "certificatesigningrequests", "approval", all},
		{"", "v1", "pods", "ephemeralcontainers", ""},
		{"", "v1", "pods", "resize", ""},
	} {
		_, put := builtinFixture(t)
		res := builtin.Table().Lookup(c.group, c.version, c.plural)
		r := put(res, func(obj resource.Object) {
			if pod, ok := obj.(*corev1.Pod); ok {
				pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
				pod.Spec.RestartPolicy, pod.Spec.DNSPolicy = corev1.RestartPolicyAlways, corev1.DNSClusterFirst
			}
		})
		namespace := ""
		if res.Namespaced {
			namespace = "default"
		}
		result, err := r.UpdateSubresource(t.Context(), namespace, "a", c.subresource, withMetadata, registry.UpdateOptions{WriteOptions: by("m")})
		if err != nil {
			t.Errorf("%s/%s: %v", c.plural, c.subresource, err)
			continue
		}
		if has, _ := written(result.Object); has != c.want {
			t.Errorf("%s/%s carried %q, want %q", c.plural, c.subresource, has, c.want)
		}
	}
}

// TestLastFinalizerGoesThroughStatus: a controller that takes off the last finalizer with
// the status has the object go, as a cloud controller does with Services.
func TestLastFinalizerGoesThroughStatus(t *testing.T) {
	for _, plural := range []string{"services", "nodes", "persistentvolumeclaims"} {
		_, put := builtinFixture(t)
		res := builtin.Table().Lookup("", "v1", plural)
		r := put(res, func(obj resource.Object) {
			now, none := metav1.Now(), int64(0)
			obj.SetFinalizers([]string{"example.com/f"})
			obj.SetDeletionTimestamp(&now)
			obj.SetDeletionGracePeriodSeconds(&none)
		})
		namespace := ""
		if res.Namespaced {
			namespace = "default"
		}
		before := ""
		result, err := r.UpdateStatus(t.Context(), namespace, "a", func(current resource.Object) (resource.Object, error) {
			obj := current.DeepCopyObject().(resource.Object)
			before = obj.GetResourceVersion()
			obj.SetFinalizers(nil)
			return obj, nil
		}, registry.UpdateOptions{})
		if err != nil || !result.Deleted {
			t.Errorf("%s: %+v (%v), want it deleted", plural, result, err)
		} else if got := result.Object.GetResourceVersion(); got != before {
			t.Errorf("%s: the answer shows version %s, not the one that the update replaced, %s", plural, got, before)
		}
		if _, err := r.Get(t.Context(), namespace, "a"); !apierrors.IsNotFound(err) {
			t.Errorf("%s: then Get gives %v", plural, err)
		}
	}
}
