package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Updater makes the new object from the current one, which it must not change
// and which is nil if the object does not exist and may be created. What it
// returns becomes the registry's. It is called once per attempt, each time
// with another current object.
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

// Update replaces the object with what update returns. A resourceVersion in
// that must be the current one, a uid must be the object's.
func (r Registry) Update(ctx context.Context, namespace, name string, update Updater, opts UpdateOptions) (*Result, error) {
	return r.update(ctx, namespace, name, partMain, "", update, opts)
}

// UpdateStatus replaces the status (and the labels and annotations) of the
// object, leaving everything else as it is.
func (r Registry) UpdateStatus(ctx context.Context, namespace, name string, update Updater, opts UpdateOptions) (*Result, error) {
	if !r.res.Status {
		return nil, badRequest("%s have no status subresource", r.res.GroupResource())
	}
	opts.MayCreate = false
	return r.update(ctx, namespace, name, partStatus, "status", update, opts)
}

// change is one update on its way: what stays the same over all attempts.
type change struct {
	Registry
	namespace, name string
	of              part
	subresource     string
	update          Updater
	opts            UpdateOptions
	rule            ownershipRule
}

func (r Registry) update(ctx context.Context, namespace, name string, of part, subresource string, update Updater, opts UpdateOptions) (*Result, error) {
	c := &change{Registry: r, namespace: namespace, name: name, of: of, subresource: subresource, update: update, opts: opts}
	return c.run(ctx)
}

func (c *change) run(ctx context.Context) (*Result, error) {
	return c.guarded(ctx, c.namespace, c.name, c.opts.DryRun, func(cur *state) (decision, error) {
		return c.decide(ctx, cur)
	})
}

func (c *change) ownership() ownership {
	return ownership{rule: c.rule, manager: c.opts.FieldManager, subresource: c.subresource}
}

func (c *change) mayCreate() bool {
	return c.of == partMain && (c.opts.MayCreate || c.res.Strategy.UpsertOnUpdate)
}

func (c *change) decide(ctx context.Context, cur *state) (decision, error) {
	if cur.object == nil && !c.mayCreate() {
		return decision{}, c.notFound(c.name)
	}
	obj, err := c.update(cur.object)
	if err != nil {
		return decision{}, err
	}
	if err := c.matchRequest(obj); err != nil {
		return decision{}, err
	}
	if cur.object == nil {
		return c.decideCreate(ctx, obj)
	}
	if err := c.checkVersion(obj, cur); err != nil {
		return decision{}, err
	}
	c.prepareUpdate(ctx, obj, cur.object, c.of, c.ownership())
	q := &Request{
		Operation: Update, Resource: c.res, Subresource: c.subresource,
		Namespace: c.namespace, Name: c.name, Object: obj, Old: cur.object, DryRun: c.opts.DryRun,
	}
	if err := c.set.admit(ctx, q); err != nil {
		return decision{}, err
	}
	if err := c.validateUpdate(obj, cur.object, c.of, c.subresource); err != nil {
		q.finish(ctx, Refused)
		return decision{}, err
	}
	if finished(obj, cur.object) {
		q.finish(ctx, Refused)
		return c.decideRemove(ctx, obj, cur.object, c.opts.DryRun)
	}
	if c.rule == ownersDecided && sameButTimes(obj, cur.object) {
		q.finish(ctx, Refused)
		return decision{action: keep}, nil
	}
	return decision{action: write, object: obj, admitted: q}, nil
}

// matchRequest refuses an object that is not the one in the request.
func (c *change) matchRequest(obj resource.Object) error {
	if err := c.matchNamespace(obj, c.namespace); err != nil {
		return err
	}
	switch obj.GetName() {
	case c.name:
		return nil
	case "":
		return badRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", c.name)
	}
	return badRequest("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), c.name)
}

func (c *change) decideCreate(ctx context.Context, obj resource.Object) (decision, error) {
	if obj.GetUID() != "" && c.rule == ownersDecided {
		return decision{}, c.conflict(c.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", obj.GetUID()))
	}
	if obj.GetResourceVersion() != "" && obj.GetResourceVersion() != "0" || obj.GetUID() != "" {
		// It was about an object that is gone.
		return decision{}, c.notFound(c.name)
	}
	obj.SetResourceVersion("")
	q, err := c.admitCreate(ctx, obj, c.opts.WriteOptions, c.ownership())
	if err != nil {
		return decision{}, err
	}
	return decision{action: create, object: obj, admitted: q}, nil
}

// checkVersion compares uid and resourceVersion with the current state
// and gives obj the version that it replaces.
func (c *change) checkVersion(obj resource.Object, cur *state) error {
	if uid := obj.GetUID(); uid != "" && uid != cur.object.GetUID() {
		//nolint:revive,staticcheck // clients know this text, capital letter included
		return c.conflict(c.name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, cur.object.GetUID()))
	}
	current := formatRevision(cur.revision)
	switch version := obj.GetResourceVersion(); {
	case version == current:
	case version == "" || version == "0":
		if !c.opts.Unconditional && !c.res.Strategy.UnconditionalUpdate {
			return c.invalid(c.name, field.ErrorList{
				field.Invalid(metadataPath.Child("resourceVersion"), 0, "must be specified for an update"),
			})
		}
		obj.SetResourceVersion(current)
	case !validVersion(version):
		return badRequest("metadata.resourceVersion %q is not a version: send the one that was read", version)
	default:
		return c.conflict(c.name, errModified)
	}
	return nil
}

// validVersion says whether version is a decimal number without leading zero.
func validVersion(version string) bool {
	for i := range len(version) {
		if version[i] < '0' || version[i] > '9' {
			return false
		}
	}
	return version != "" && version[0] != '0'
}
