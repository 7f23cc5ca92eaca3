package levelwiretest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/client/wait"
)

// discoveryInterval is how often discovery is asked for a new kind.
const discoveryInterval = 50 * time.Millisecond

// ApplyFiles applies the objects of files with YAML or JSON, in their order, and returns
// them as the server has them: a program's manifests, CustomResourceDefinitions before
// objects of their kinds. It is server-side apply with force; the namespace is "default"
// if an object of a kind with namespaces has none. It waits until a
// CustomResourceDefinition is established, and its kind is in discovery. Whatever fails ends the test.
func ApplyFiles(t testing.TB, c *client.Client, paths ...string) []*unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	mapper := discovery.NewMapper(c, discovery.Options{})
	var applied []*unstructured.Unstructured
	for _, path := range paths {
		objects, err := readObjects(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objects {
			got, err := applyObject(ctx, mapper, obj)
			if err != nil {
				t.Fatalf("%s: %s %q: %v", path, obj.GetKind(), obj.GetName(), err)
			}
			applied = append(applied, got)
		}
	}
	return applied
}

// readObjects reads all objects of a file.
func readObjects(path string) (objects []*unstructured.Unstructured, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(file), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(obj.Object) > 0 { // a document may be a comment alone
			objects = append(objects, obj)
		}
	}
}

func applyObject(ctx context.Context, mapper *discovery.Mapper, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	endpoint, err := discovery.Dynamic(ctx, mapper, obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping, _ := endpoint.Mapping(); mapping.Scope == scheme.Namespaced {
		endpoint = endpoint.Namespace(cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault))
	}
	applied, err := endpoint.Apply(ctx, obj, metav1.ApplyOptions{FieldManager: "levelwiretest", Force: true})
	if err != nil || obj.GetKind() != "CustomResourceDefinition" {
		return applied, err
	}
	established, err := wait.Until(ctx, endpoint, obj.GetName(), isEstablished)
	if err != nil {
		return nil, err
	}
	return established, awaitKind(ctx, mapper, established)
}

// awaitKind waits until discovery has the kind of an established definition: kube-apiserver's is a moment behind.
func awaitKind(ctx context.Context, mapper *discovery.Mapper, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, err := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	for err == nil {
		_, err = mapper.ByKind(ctx, schema.GroupKind{Group: group, Kind: kind})
		if !meta.IsNoMatchError(err) {
			break
		}
		select {
		case <-time.After(discoveryInterval):
			err = nil
		case <-ctx.Done():
		}
	}
	return err
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return err == nil
		}
	}
	return false
}
