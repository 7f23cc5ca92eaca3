package registry

import (
	"context"

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
	// whatever the strategy says: the server's own writes.
	Unconditional bool
}

// Update replaces the object with what updater returns. A resourceVersion in
// that must be the current one, a uid must be the object's.
func (r Registry) Update(ctx context.Context, namespace, name string, updater Updater, opts UpdateOptions) (*Result, error) {
	return r.UpdateThrough(ctx, Endpoint{}, namespace, name, updater, opts)
}

// UpdateStatus replaces the status of the object, and the metadata that the kind does not
// keep (Strategy.StatusKeeps), leaving everything else as it is. Without its last
// finalizer, an object that is being deleted goes.
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
		registry: r, verb: u, namespace: namespace, name: name, endpoint: endpoint,
		manager: opts.FieldManager, dryRun: opts.DryRun, stated: opts.Stated, admitted: opts.Admitted,
		authorizeCreate: opts.AuthorizeCreate,
	}
}

// update is the verb update, and what patch, apply and the subresources come
// down to.
type update struct {
	updater       Updater
	mayCreate     bool
	unconditional bool
	patches       bool // the verb is patch, but not server-side apply
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
	if err == nil {
		err = w.matchKind(obj)
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

// patches reports whether the verb is patch, server-side apply included.
func (w *pendingWrite) patches() bool {
	u, ok := w.verb.(*update)
	return ok && (u.patches || w.endpoint.Ownership == OwnershipStated)
}

// matchRequest refuses an object that is not the one in the request.
func (w *pendingWrite) matchRequest(obj resource.Object) error {
	if err := w.registry.MatchNamespace(obj, w.namespace); err != nil {
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

// matchKind refuses a custom resource of another kind or version than the endpoint's. What a built-in one says
// of its kind is judged when it is decoded. As in Kubernetes, an update of the status does not look at the
// kind: of what was sent, only the status counts.
func (w *pendingWrite) matchKind(obj resource.Object) error {
	r, got := w.registry, obj.GetObjectKind().GroupVersionKind()
	want := r.res.GroupVersionKind()
	if !r.stored.Mixed || got == want {
		return nil
	}
	if w.endpoint.Scope == ScopeStatus && got.Version != "" {
		obj.GetObjectKind().SetGroupVersionKind(want)
		_, err := r.res.Prune(obj)
		return err
	}
	var errs field.ErrorList
	if got.Kind != want.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), got.Kind, "must be "+want.Kind))
	}
	if is, must := got.GroupVersion().String(), want.GroupVersion().String(); is != must {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), is, "must be "+must))
	}
	return status.Invalid(got.GroupKind(), obj.GetName(), errs)
}
