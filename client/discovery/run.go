package discovery

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// Run watches CustomResourceDefinitions, and invalidates what the Mapper knows when
// there is a change, until ctx ends. It is optional: without it a new kind is found
// because it is missing, and a kind that has gone is found missing after Options.MaxAge.
// It needs permission to list and watch customresourcedefinitions, and may be called
// once at a time. With Name and NeedLeaderElection it makes the Mapper a
// controller.Runnable.
func (m *Mapper) Run(ctx context.Context) error {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	r, err := reflector.New(reflector.Resource(client.Metadata(m.client, definitions), nil), invalidator{m},
		reflector.Options{Name: definitions.GroupResource().String(), Logger: m.opts.Logger})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// Name is for the errors of controller.Run.
func (m *Mapper) Name() string { return "discovery" }

// NeedLeaderElection returns false: all processes map kinds.
func (m *Mapper) NeedLeaderElection() bool { return false }

// invalidator is the reflector's store. It keeps nothing.
type invalidator struct{ mapper *Mapper }

// Add implements reflector.Store.
func (i invalidator) Add(*metav1.PartialObjectMetadata) error { return i.changed() }

// Update implements reflector.Store.
func (i invalidator) Update(*metav1.PartialObjectMetadata) error { return i.changed() }

// Delete implements reflector.Store.
func (i invalidator) Delete(*metav1.PartialObjectMetadata) error { return i.changed() }

// Replace implements reflector.Store.
func (i invalidator) Replace([]*metav1.PartialObjectMetadata, string) error { return i.changed() }

func (i invalidator) changed() error {
	i.mapper.Invalidate()
	return nil
}
