package levelwiretest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

const manifests = `# a comment
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, singular: lamp, kind: Lamp, listKind: LampList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: hall}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: first}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: second, namespace: hall}
`

func TestApplyFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lamps.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	c := levelwiretest.NewClient(t, client.Options{})
	for range 2 { // what exists already is no error
		objects := levelwiretest.ApplyFiles(t, c, file)
		if len(objects) != 4 {
			t.Fatalf("%d objects, want 4", len(objects))
		}
		for i, want := range []string{"/lamps.example.com", "/hall", "default/first", "hall/second"} {
			if got := objects[i].GetNamespace() + "/" + objects[i].GetName(); got != want || objects[i].GetUID() == "" {
				t.Errorf("object %d is %s with UID %q, want %s", i, got, objects[i].GetUID(), want)
			}
		}
	}
}
