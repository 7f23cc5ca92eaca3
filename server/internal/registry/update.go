package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Updater makes the new object from the current one, which it must not change
// and which is nil if the object does not exist and may be created. The registry
// takes over what it returns. It is called once per attempt, each time with
// another current object.
type Updater func(current resource.Object) (resource.Object, error)

// UpdateOptions are the options of an update or a patch.
type UpdateOptions struct {
	WriteOptions
	// MayCreate makes a missing object, whatever the strategy says.
	MayCreate bool
	// Unconditional allows the new object to be without resourceVersion,
	// whatever the strategy says.
	Unconditional bool
}

// Update replaces the object with what updater returns. A resourceVersion in
// that must be the current one, a uid must be the object's.
func (r Registry) Update(ctx context.Context, namespace, name string, updater Updater, opts UpdateOptions) (*Result, error) {
	return r.UpdateThrough(ctx, Endpoint{}, namespace, name, updater, opts)
}

// UpdateStatus replaces the status (and the labels and annotations) of the
// object, leaving everything else as it is.
func (r Registry) UpdateStatus(ctx context.Context, namespace, name string, updater Updater, opts UpdateOptions) (*Result, error) {
	if err := r.requireStatus(); err != nil {
		return nil, err
	}
	opts.MayCreate = false
	return r.UpdateThrough(ctx, statusEndpoint, namespace, name, updater, opts)
}

func (r Registry) requireStatus() error {
	if !r.res.Status {
		return status.BadRequest("%s have no status subresource", r.res.GroupResource())
	}
	return nil
}

// UpdateThrough is Update through any endpoint of the object. Only through its
// own can it be created.
func (r Registry) UpdateThrough(ctx context.Context, endpoint Endpoint, namespace, name string, updater Updater, opts UpdateOptions) (*Result, error) {
	return r.pendingUpdate(endpoint, namespace, name, opts.WriteOptions, &update{
		updater: updater, unconditional: opts.Unconditional,
		mayCreate: endpoint.Scope == ScopeMain && (opts.MayCreate || r.res.Strategy.UpsertOnUpdate),
	}).run(ctx)
}

func (r Registry) pendingUpdate(endpoint Endpoint, namespace, name string, opts WriteOptions, u *update) *pendingWrite {
	return &pendingWrite{
		registry: r, verb: u, namespace: namespace, name: name, endpoint: endpoint, manager: opts.FieldManager, dryRun: opts.DryRun,
	}
}

// update is the verb update, and what patch, apply and the subresources come
// down to.
type update struct {
	updater       Updater
	mayCreate     bool
	unconditional bool
}

func (u *update) decide(_ context.Context, w *pendingWrite) error {
	if w.current.object == nil && !u.mayCreate {
		return w.registry.notFound(w.name)
	}
	obj, err := u.updater(w.current.object)
	if err == nil && w.endpoint.Scope == ScopeSubresource {
		obj, err = w.mergeSubresource(obj)
	}
	if err != nil {
		return err
	}
	if err := w.matchRequest(obj); err != nil {
		return err
	}
	if w.current.object == nil {
		err = u.checkNew(w, obj)
	} else {
		err = u.checkVersion(w, obj)
	}
	if err != nil {
		return err
	}
	w.operation, w.action, w.object = Update, replace, obj
	if w.current.object == nil {
		w.operation, w.action = Create, create
	}
	return nil
}

// matchRequest refuses an object that is not the one in the request.
func (w *pendingWrite) matchRequest(obj resource.Object) error {
	if err := w.registry.matchNamespace(obj, w.namespace); err != nil {
		return err
	}
	switch obj.GetName() {
	case w.name:
		return nil
	case "":
		return status.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", w.name)
	}
	return status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), w.name)
}

// checkNew refuses to create an object that the client took for an existing one.
func (u *update) checkNew(w *pendingWrite, obj resource.Object) error {
	if obj.GetUID() != "" && w.endpoint.Ownership == OwnershipStated {
		return w.registry.conflict(w.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", obj.GetUID()))
	}
	if obj.GetResourceVersion() != "" && obj.GetResourceVersion() != "0" || obj.GetUID() != "" {
		return w.registry.notFound(w.name)
	}
	obj.SetResourceVersion("")
	return nil
}

// checkVersion compares uid and resourceVersion with those of the current state,
// and gives obj the version that it replaces.
func (u *update) checkVersion(w *pendingWrite, obj resource.Object) error {
	if uid := obj.GetUID(); uid != "" && uid != w.current.object.GetUID() {
		//nolint:revive,staticcheck // clients know this text, capital letter included
		return w.registry.conflict(w.name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, w.current.object.GetUID()))
	}
	current := formatRevision(w.current.revision)
	switch version := obj.GetResourceVersion(); {
	case version == current:
	case version == "" || version == "0":
		if !u.unconditional && !w.registry.res.Strategy.UnconditionalUpdate {
			return w.registry.invalid(w.name, field.ErrorList{
				field.Invalid(metadataPath.Child("resourceVersion"), 0, "must be specified for an update"),
			})
		}
		obj.SetResourceVersion(current)
	case !validVersion(version):
		return status.BadRequest("metadata.resourceVersion %q is not a version: send the one that was read", version)
	default:
		return w.registry.conflict(w.name, errModified)
	}
	return nil
}

// validVersion reports whether version is a decimal number without leading zero.
func validVersion(version string) bool {
	for i := range len(version) {
		if version[i] < '0' || version[i] > '9' {
			return false
		}
	}
	return version != "" && version[0] != '0'
}
