package handlers

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// componentStatus asks one component. The refusal names the kind as kube-apiserver's does, by its
// singular.
func (h *Handlers) componentStatus(ctx context.Context, name string) (*watchcache.Object, error) {
	status, ok := h.config.Components.Get(ctx, name)
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: componentStatuses.Singular}, name)
	}
	return unstoredObject(componentStatuses, status)
}

// listComponentStatuses asks all components, and selects from what they say. They have no versions
// and no pages, and are in no shard: the rest of the options is checked and ignored.
func (h *Handlers) listComponentStatuses(ctx context.Context, q *request.Info, opts *metav1.ListOptions) (read.Page, error) {
	selection, err := q.Scope().Selection(opts)
	if err != nil {
		return read.Page{}, err
	}
	selection = selection.Within(nil)
	var selected []*watchcache.Object
	for _, status := range h.config.Components.List(ctx) {
		object, err := unstoredObject(componentStatuses, status)
		if err != nil {
			return read.Page{}, err
		}
		if selection.Matches(object) {
			selected = append(selected, object)
		}
	}
	return read.Page{Items: slices.Values(selected)}, nil
}

// unstoredObject returns an object in the form in which a cache has those that are stored, but
// without a version.
func unstoredObject(res *resource.Resource, obj resource.Object) (*watchcache.Object, error) {
	json, err := res.Marshal(obj)
	if err != nil {
		return nil, err
	}
	attributes, err := res.Attributes(json)
	if err != nil {
		return nil, err
	}
	return watchcache.NewUnversioned(res.Key(attributes.Namespace, attributes.Name), 0, attributes, json), nil
}
