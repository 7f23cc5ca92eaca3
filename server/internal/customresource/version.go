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
	head       *headVersion
	kind       schema.GroupVersionKind
	resource   *resource.Resource // nil if it is not served
	schema     *compiled          // shared by all states of the definition with the same schema
	generation uint64

	// sure is the revision after which objects of this version were written by
	// its present schema: they are pruned and defaulted as they are. Shared
	// like the schema.
	sure *atomic.Int64
}

// notYet as version.sure: a schema has changed just now, and servers (this one
// included) may still be about to write by the one before.
const notYet = math.MaxInt64

func (v *version) trustFrom(revision storage.Revision) { v.sure.Store(int64(revision)) }

// asStored reports whether a cached object is what the version shows.
func (v *version) asStored(prefix, json []byte, revision int64) bool {
	return revision > v.sure.Load() && bytes.HasPrefix(json, prefix)
}

// apiVersion is how objects name the version.
func (v *version) apiVersion() string { return v.kind.GroupVersion().String() }

// fields are what a fieldSelector may name. A field is known by its path, so
// that it is the same one in every version that has it.
func (v *version) fields() []resource.Field {
	list := make([]resource.Field, 0, len(v.head.SelectableFields))
	for _, f := range v.head.SelectableFields {
		name := strings.TrimPrefix(f.JSONPath, ".")
		list = append(list, resource.Field{Name: name, Paths: [][]string{splitPath(f.JSONPath)}})
	}
	return list
}

// splitPath splits a simple JSONPath, ".spec.replicas".
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
