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

// origin says where an object comes from, and with that how strictly it is pruned.
type origin uint8

const (
	// fromClient: malformed metadata is an error, unknown fields are reported.
	fromClient origin = iota
	// fromStore: it was written by a schema that may have been another one;
	// fields that do not fit are dropped.
	fromStore
	// fromWebhook: malformed metadata is an error, unknown fields are dropped.
	fromWebhook
)

// prune removes from an object of the version the fields that its schema does not
// know, and returns their paths if the origin is a client. Metadata has the fields
// that every object has, whatever the schema says about it.
func (v *version) prune(u *unstructured.Unstructured, from origin) (unknown []string, err error) {
	nodes, err := v.schema.structural()
	if err != nil {
		return nil, err
	}
	track := from == fromClient
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: from == fromStore, ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	if !v.schema.preserve {
		unknown = append(unknown, pruning.PruneWithOptions(u.Object, nodes, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, nodes)
	}
	fieldErr, more := objectmeta.CoerceWithOptions(nil, u.Object, nodes, false, objectmeta.CoerceOptions{
		DropInvalidFields: from == fromStore, ReturnUnknownFieldPaths: track,
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

// pruneMetadata is prune for an object of a kind or version without a schema.
func pruneMetadata(u *unstructured.Unstructured, from origin) (unknown []string, err error) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: from == fromStore, ReturnUnknownFieldPaths: from == fromClient,
	})
	if err != nil || !found {
		return unknown, err
	}
	return unknown, objectmeta.SetObjectMeta(u.Object, meta)
}

// defaults fills in the fields that the version's schema has defaults for.
func (v *version) defaults(u *unstructured.Unstructured) error {
	nodes, err := v.schema.structural()
	if err != nil || nodes == nil {
		return err
	}
	defaulting.Default(u.Object, nodes)
	return nil
}

// pruneBody is resource.Resource.Prune for a version. A client may send an object of any kind: one of
// another version of this kind is pruned by that version's schema, and of one without a
// schema here only the metadata is pruned.
func (d *definition) pruneBody(v *version, u *unstructured.Unstructured) ([]error, error) {
	gvk, prune := u.GroupVersionKind(), pruneMetadata
	if gvk.GroupKind() == v.kind.GroupKind() {
		if of := d.version(gvk.Version); of != nil {
			prune = of.prune
		}
	}
	paths, err := prune(u, fromClient)
	if err != nil {
		return nil, err
	}
	unknown := make([]error, len(paths))
	for i, path := range paths {
		unknown[i] = fmt.Errorf("unknown field %q", path)
	}
	return unknown, nil
}

// errForeign is a stored object of a version that the definition does not have.
var errForeign = errors.New("its version is no longer in the definition: serve it again, or write the object again in another version")

// restore prunes and defaults a stored object by the schema of its own version.
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
