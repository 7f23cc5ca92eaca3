package builtin_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests got into testdata")

// TestDefaultsGolden completes and prepares each manifest in testdata as a
// create does. Beside each NAME.yaml is NAME.golden.yaml with the result.
func TestDefaultsGolden(t *testing.T) {
	table := builtin.Table()
	manifests, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range manifests {
		if strings.HasSuffix(file, ".golden.yaml") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(body, &head); err != nil {
				t.Fatal(err)
			}
			r := table.ByKind(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
			got := created(t, r, body)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden.yaml"
			if *rewrite {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// created returns the YAML of what a create makes of a manifest. The manifest
// must be valid.
func created(t *testing.T, r *resource.Resource, body []byte) []byte {
	t.Helper()
	obj, _, strict, err := r.DecodeBody(resource.MediaTypeYAML, body)
	if err != nil || len(strict) > 0 {
		t.Fatal(strict, err)
	}
	obj.SetUID("11111111-2222-3333-4444-555555555555")
	s := r.Strategy
	if s.Default != nil {
		s.Default(obj)
	}
	if s.PrepareForCreate != nil {
		s.PrepareForCreate(obj)
	}
	if errs := validateNew(r, obj); len(errs) > 0 {
		t.Errorf("refused: %v", errs.ToAggregate())
	}
	encoded, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml.JSONToYAML(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
