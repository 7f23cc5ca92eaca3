package customresource

import (
	"errors"
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// origin says where an object comes from, and so how strict to be with it.
type origin uint8

const (
	// fromClient: malformed metadata is an error, unknown fields are told.
	fromClient origin = iota
	// fromStore: it was written by rules that may have been others; what does
	// not fit is dropped.
	fromStore
	// fromWebhook: malformed metadata is an error, unknown fields are not told.
	fromWebhook
)

// prune takes out of an object of the version what its schema does not know,
// and returns the paths of what it took, if the origin is a client. Metadata is
// always that of every object, whatever the schema says of it.
func (v *version) prune(u *unstructured.Unstructured, from origin) (unknown []string, err error) {
	nodes, err := v.schema.structural()
	if err != nil {
		return nil, err
	}
	tell := from == fromClient
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: from == fromStore, ReturnUnknownFieldPaths: tell,
	})
	if err != nil {
		return nil, err
	}
	if !v.schema.preserve {
		unknown = append(unknown, pruning.PruneWithOptions(u.Object, nodes, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: tell})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, nodes)
	}
	fieldErr, more := objectmeta.CoerceWithOptions(nil, u.Object, nodes, false, objectmeta.CoerceOptions{
		DropInvalidFields: from == fromStore, ReturnUnknownFieldPaths: tell,
	})
	if fieldErr != nil {
		return nil, fieldErr
	}
	if hasMeta {
		if from == fromStore && meta.Generation == 0 {
			meta.Generation = 1
		}
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
	}
	return append(unknown, more...), nil
}

// defaults fills in what the version's schema has defaults for.
func (v *version) defaults(u *unstructured.Unstructured) error {
	nodes, err := v.schema.structural()
	if err != nil || nodes == nil {
		return err
	}
	defaulting.Default(u.Object, nodes)
	return nil
}

// pruneBody is resource.Resource.Prune.
func (v *version) pruneBody(u *unstructured.Unstructured) ([]error, error) {
	paths, err := v.prune(u, fromClient)
	if err != nil {
		return nil, fmt.Errorf("malformed body: %w", err)
	}
	unknown := make([]error, len(paths))
	for i, path := range paths {
		unknown[i] = fmt.Errorf("unknown field %q", path)
	}
	return unknown, nil
}

// errForeign is a stored object that the definition knows nothing of.
var errForeign = errors.New("its version is no longer in the definition: serve it again, or write the object anew in another version")

// restore makes of a stored object what its own version says it is.
func (d *definition) restore(u *unstructured.Unstructured) (*version, error) {
	v := d.version(u.GroupVersionKind().Version)
	if v == nil {
		return nil, fmt.Errorf("the stored %s %q is of %s: %w", u.GetKind(), u.GetName(), u.GetAPIVersion(), errForeign)
	}
	if _, err := v.prune(u, fromStore); err != nil {
		return nil, err
	}
	return v, v.defaults(u)
}
