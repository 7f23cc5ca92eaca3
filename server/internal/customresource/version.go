package customresource

import (
	"bytes"
	"math"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// version is one version of a definition.
type version struct {
	spec       *crdVersion
	kind       schema.GroupVersionKind
	resource   *resource.Resource // nil if it is not served
	schema     *compiledSchema    // shared by all states of the definition with the same schema
	generation uint64

	// trustedAfter is the revision after which objects of this version were
	// written by its present schema, so that they are pruned and defaulted as they
	// are. It is shared like the schema.
	trustedAfter *atomic.Int64
}

// untrusted as version.trustedAfter: a schema has just changed, and servers (this
// one included) may still be about to write by the schema before.
const untrusted = math.MaxInt64

func (v *version) trustAfter(revision storage.Revision) { v.trustedAfter.Store(int64(revision)) }

// asStored reports whether a cached object is what the version shows.
func (v *version) asStored(prefix, json []byte, revision int64) bool {
	return revision > v.trustedAfter.Load() && bytes.HasPrefix(json, prefix) && !resource.IsUnchecked(json)
}

// apiVersion is how objects name the version.
func (v *version) apiVersion() string { return v.kind.GroupVersion().String() }

// fields are those that a fieldSelector may name. A field is named by its path, so
// that it is the same in every version that has it.
func (v *version) fields() []resource.Field {
	list := make([]resource.Field, 0, len(v.spec.SelectableFields))
	for _, f := range v.spec.SelectableFields {
		name := strings.TrimPrefix(f.JSONPath, ".")
		list = append(list, resource.Field{Name: name, Paths: [][]string{splitPath(f.JSONPath)}})
	}
	return list
}

// splitPath splits a simple JSONPath, ".spec.replicas".
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
