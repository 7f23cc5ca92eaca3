package server

import (
	"context"
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// StorageLayout says how a server keeps the objects of a resource in its storage, for
// programs that make a storage.Store of objects that they have from elsewhere (see
// Config.OpenStore and ReadOnly). The key of an object is the prefix and
// namespace/name, or name. convert makes the stored form of an object in JSON in the
// given version; nil means that this is the stored form. ok is false if the server does
// not serve a resource of Kubernetes in this version. Every other group is taken for one
// of custom resources.
func StorageLayout() func(group, version, plural string) (prefix string, convert func(object []byte) ([]byte, error), ok bool) {
	table := builtin.Table()
	return func(group, version, plural string) (string, func([]byte) ([]byte, error), bool) {
		if res := table.Lookup(group, version, plural); res != nil {
			if res.Storage == nil {
				return res.StorePrefix, nil, true
			}
			return res.Storage.StorePrefix, func(object []byte) ([]byte, error) { return storedForm(res, object) }, true
		}
		if slices.ContainsFunc(table.Groups(), func(g resource.Group) bool { return g.Name == group }) {
			return "", nil, false // definitions of custom resources cannot add to a group of Kubernetes
		}
		return resourcePrefix + group + "/" + plural + "/", nil, true
	}
}

// storedForm converts an object to the version that is stored.
func storedForm(res *resource.Resource, object []byte) ([]byte, error) {
	obj, err := res.DecodeShown(slices.Clone(object))
	if err != nil {
		return nil, err
	}
	return res.Encode(context.Background(), obj)
}
