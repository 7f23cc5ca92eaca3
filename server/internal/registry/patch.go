package registry

import (
	"context"

	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// PatchOptions are the options of a patch.
type PatchOptions struct {
	WriteOptions
	// Force lets a server-side apply take fields from other managers.
	Force bool
	// Decode turns the patched JSON into an object of the endpoint, and refuses
	// or reports unknown fields. Server-side apply does not call it.
	Decode func(patched []byte) (resource.Object, error)
	// Merged refuses, or reports, members that stand twice in a server-side apply, which can be
	// merged nevertheless. It is called when that has succeeded; nil if nothing is to be said.
	Merged func() error
}

// AfterMerge is Merged, which may be nil.
func (o *PatchOptions) AfterMerge() error {
	if o.Merged == nil {
		return nil
	}
	return o.Merged()
}

// Patch applies a patch to the object. If another write comes first, the patch
// is applied to what that has written, unless the patch names a resourceVersion,
// which is not the current one any more.
func (r Registry) Patch(ctx context.Context, namespace, name string, p *patch.Patch, opts PatchOptions) (*Result, error) {
	return r.patch(ctx, Endpoint{}, namespace, name, p, opts)
}

// PatchStatus applies a patch to the object and takes over its status.
func (r Registry) PatchStatus(ctx context.Context, namespace, name string, p *patch.Patch, opts PatchOptions) (*Result, error) {
	if err := r.requireStatus(); err != nil {
		return nil, err
	}
	return r.patch(ctx, statusEndpoint, namespace, name, p, opts)
}

// patch is the verb patch: an update to what the patch makes of the current
// object.
func (r Registry) patch(ctx context.Context, endpoint Endpoint, namespace, name string, p *patch.Patch, opts PatchOptions) (*Result, error) {
	if p.IsApply() {
		return r.apply(ctx, endpoint, namespace, name, p, opts)
	}
	u := &update{patches: true}
	w := r.pendingUpdate(endpoint, namespace, name, opts.WriteOptions, u)
	like := r.res.New()
	u.updater = func(resource.Object) (resource.Object, error) {
		doc, err := w.document(p)
		if err != nil {
			return nil, err
		}
		patched, err := p.Apply(doc, like)
		if err != nil {
			return nil, err
		}
		return r.decodePatched(patched, opts.Decode)
	}
	return w.run(ctx)
}

// besideSpec are the members of a built-in object that a write of its status looks at.
var besideSpec = []string{"kind", "apiVersion", "metadata", "status"}

// document returns the JSON that a patch is applied to: a state in the endpoint's
// shape. It has no managedFields if the patch leaves them alone; an object that
// is written without them keeps those that it has. For the same reason it has only what
// a write of the status looks at, if the patch is about the status alone: without a spec,
// labels that a patch of the metadata takes away are not defaulted from it.
func (w *pendingWrite) document(p *patch.Patch) ([]byte, error) {
	r, cur := w.registry, w.current
	json, err := cur.json, error(nil)
	if r.res != r.stored {
		json, err = r.res.Marshal(cur.object)
	}
	if err == nil && w.endpoint.Scope == ScopeStatus && !r.stored.Mixed && p.Within("kind", "apiVersion", "status") {
		json, err = resource.WithMembers(json, besideSpec)
	}
	if err == nil && p.LeavesManagedFields() {
		json, err = resource.WithoutManagedFields(json)
	}
	if err != nil {
		return nil, r.StoreError(cur.object.GetName(), err)
	}
	return json, nil
}

func (r Registry) decodePatched(patched []byte, decode func([]byte) (resource.Object, error)) (resource.Object, error) {
	if decode != nil {
		return decode(patched)
	}
	obj, _, _, err := r.res.DecodeBodyInPlace(resource.MediaTypeJSON, patched)
	if err != nil {
		return nil, status.BadRequest("the patched object cannot be decoded: %v", err)
	}
	return obj, nil
}
