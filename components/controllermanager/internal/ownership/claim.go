package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// Alive says, from the API server itself, whether an owner may still adopt.
type Alive func(context.Context) (bool, error)

// Claimer claims objects of type T for owners of one kind. It is safe for
// concurrent use.
type Claimer[T client.Object] struct {
	// API is where the objects are.
	API client.Resource[T]
	// Kind is the owners' kind.
	Kind schema.GroupVersionKind
	// Adoptable selects which orphans may be adopted, besides matching. nil is
	// all that are not being deleted.
	Adoptable func(T) bool
}

// Claim returns the objects among candidates that belong to owner: all of them, or an
// error. An object about which nothing could be decided is never left out, since an owner
// that counts one too few makes another, and then deletes one that runs. The error is a
// Conflict if the caches are behind the server; they will not be for long. alive is
// asked once, before the first adoption: a cache that is behind must not
// adopt for the dead.
func (c Claimer[T]) Claim(ctx context.Context, owner metav1.Object, selector labels.Selector, candidates []T, alive Alive) ([]T, error) {
	var mine, orphans []T
	for _, obj := range candidates {
		ref := metav1.GetControllerOfNoCopy(obj)
		matches := selector.Matches(labels.Set(obj.GetLabels()))
		switch {
		case ref == nil && matches && c.adoptable(obj):
			orphans = append(orphans, obj)
		case ref == nil || ref.UID != owner.GetUID():
		case matches:
			mine = append(mine, obj)
		case owner.GetDeletionTimestamp() == nil:
			if err := c.release(ctx, owner, obj); err != nil {
				return nil, err
			}
		}
	}
	if len(orphans) == 0 || owner.GetDeletionTimestamp() != nil {
		return mine, nil
	}
	switch ok, err := alive(ctx); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, c.behind(owner, errors.New("it has been deleted or replaced, and the cache does not show that yet"))
	}
	for _, obj := range orphans {
		adopted, err := c.adopt(ctx, owner, obj)
		if err != nil {
			return nil, err
		}
		if adopted {
			mine = append(mine, obj)
		}
	}
	return mine, nil
}

func (c Claimer[T]) adoptable(obj T) bool {
	if c.Adoptable != nil {
		return c.Adoptable(obj)
	}
	return obj.GetDeletionTimestamp() == nil
}

// StillThere asks the API server whether owner exists, is the same object and
// is not being deleted.
func StillThere[T client.Object](api client.Resource[T], owner metav1.Object) Alive {
	return func(ctx context.Context) (bool, error) {
		fresh, err := api.Namespace(owner.GetNamespace()).Get(ctx, owner.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("check the owner before it adopts: %w", err)
		}
		return fresh.GetUID() == owner.GetUID() && fresh.GetDeletionTimestamp() == nil, nil
	}
}

// behind is the error of a decision for which the cache is too old.
func (c Claimer[T]) behind(owner metav1.Object, why error) error {
	kind := schema.GroupResource{Group: c.Kind.Group, Resource: strings.ToLower(c.Kind.Kind)}
	return apierrors.NewConflict(kind, owner.GetName(), why)
}

// adopt adds the owner to obj's owner references, and returns false if there is no such object any
// more. It names no resource version: a pod that is bound or whose status changes meanwhile is
// adopted all the same.
func (c Claimer[T]) adopt(ctx context.Context, owner metav1.Object, obj T) (bool, error) {
	err := c.patchOwner(ctx, obj, metav1.NewControllerRef(owner, c.Kind))
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err) || apierrors.IsInvalid(err) && c.taken(ctx, obj):
		// Replaced by one of the same name, or taken by another controller: the watch will deliver that.
		return false, c.behind(owner, fmt.Errorf("adopt %s: %w", obj.GetName(), err))
	default:
		return false, fmt.Errorf("adopt %s: %w", obj.GetName(), err)
	}
}

// taken reports whether the server has an object under obj's name that cannot be adopted: what
// else makes the adoption invalid, such as a policy, lasts, and has to be seen.
func (c Claimer[T]) taken(ctx context.Context, obj T) bool {
	return c.live(ctx, obj, func(now T) bool { return now.GetUID() != obj.GetUID() || metav1.GetControllerOfNoCopy(now) != nil })
}

// replaced reports whether the server has another object under obj's name.
func (c Claimer[T]) replaced(ctx context.Context, obj T) bool {
	return c.live(ctx, obj, func(now T) bool { return now.GetUID() != obj.GetUID() })
}

// live reports whether the server has an object under obj's name that is as asked. It lists, which the roles of
// controllers allow.
func (c Claimer[T]) live(ctx context.Context, obj T, is func(now T) bool) bool {
	name := fields.OneTermEqualSelector("metadata.name", obj.GetName()).String()
	live, err := c.API.Namespace(obj.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: name})
	return err == nil && slices.ContainsFunc(live.Items, is)
}

// release takes the owner from obj's owner references. A conflict is returned: the object was not released, or it is
// another one now, and then there may be one more than the cache shows.
func (c Claimer[T]) release(ctx context.Context, owner metav1.Object, obj T) error {
	err := c.patchOwner(ctx, obj, map[string]any{"$patch": "delete", "uid": owner.GetUID()})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err) || apierrors.IsInvalid(err) && c.replaced(ctx, obj):
		return c.behind(owner, fmt.Errorf("release %s: %w", obj.GetName(), err))
	default:
		return fmt.Errorf("release %s: %w", obj.GetName(), err)
	}
}

// patchOwner merges one entry into the owner references, whose merge key is the owner's
// uid. The object's uid guards against another object of the same name. A second
// controller is refused by the server's validation.
func (c Claimer[T]) patchOwner(ctx context.Context, obj T, ref any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "ownerReferences": []any{ref},
	}})
	if err != nil {
		return err
	}
	_, err = c.API.Namespace(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}
