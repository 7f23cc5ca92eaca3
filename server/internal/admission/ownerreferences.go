package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// ownerReferences refuses owners of an object that the user may not delete, and owners
// that wait for their dependents although the user may not set their finalizers.
type ownerReferences struct {
	set        *registry.Set
	authorizer auth.Authorizer
}

// OwnerReferencesPermissions returns the plugin OwnerReferencesPermissionEnforcement.
func OwnerReferencesPermissions(set *registry.Set, authorizer auth.Authorizer) registry.Admission {
	return ownerReferences{set, authorizer}.check
}

func (o ownerReferences) check(ctx context.Context, q *registry.Request) error {
	user, ok := auth.UserFrom(ctx)
	isPodStatus := q.Resource.GroupResource() == podsResource && q.Subresource == "status" // cannot change owners
	if !ok || q.Object == nil || isPodStatus || q.Operation != registry.Create && q.Operation != registry.Update {
		return nil
	}
	owners, before := q.Object.GetOwnerReferences(), []metav1.OwnerReference(nil)
	if q.Old != nil {
		before = q.Old.GetOwnerReferences()
	}
	if equality.Semantic.DeepEqual(owners, before) {
		return nil
	}
	if q.Operation == registry.Update {
		res := q.Resource.GroupVersionKind()
		decision, reason, err := o.authorizer.Authorize(ctx, auth.Attributes{
			User: user, Verb: "delete", Group: res.Group, Version: res.Version, Resource: q.Resource.GroupResource().Resource,
			Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
		})
		if decision != auth.Allow {
			return q.Forbidden(fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %s, %s", reason, fmt.Sprint(err)))
		}
	}
	return o.checkBlocking(ctx, q, user, newlyBlocking(owners, before))
}

// newlyBlocking returns the owners that will wait for the object's end and did not before.
func newlyBlocking(owners, before []metav1.OwnerReference) []metav1.OwnerReference {
	blocked := map[types.UID]bool{}
	for i := range before {
		blocked[before[i].UID] = blocks(&before[i])
	}
	var blocking []metav1.OwnerReference
	for i := range owners {
		if blocks(&owners[i]) && !blocked[owners[i].UID] {
			blocking = append(blocking, owners[i])
		}
	}
	return blocking
}

func blocks(ref *metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

func (o ownerReferences) checkBlocking(ctx context.Context, q *registry.Request, user auth.User, owners []metav1.OwnerReference) error {
	if len(owners) == 0 {
		return nil
	}
	everything := auth.Attributes{User: user, Verb: "update", Group: "*", Version: "*", Resource: "*", Subresource: "finalizers", Name: "*"}
	if decision, _, _ := o.authorizer.Authorize(ctx, everything); decision == auth.Allow {
		return nil
	}
	asked := sets.Set[ownerName]{}
	for i := range owners {
		owner := ownerName{owners[i].APIVersion, owners[i].Kind, owners[i].Name}
		if asked.Has(owner) {
			continue
		}
		if asked.Insert(owner); len(asked) > maxBlockedOwners {
			return q.Forbidden(fmt.Errorf("cannot set blockOwnerDeletion in more than %d ownerReferences at once", maxBlockedOwners))
		}
		if err := o.checkOwner(ctx, q, user, owner); err != nil {
			return err
		}
	}
	return nil
}

// maxBlockedOwners is of how many owners the authorizer is asked for a request: it may be a webhook, and an
// object has room for 20,000 of them.
const maxBlockedOwners = 1000

// ownerName is what the authorizer is asked about an owner by. References may differ in nothing but UIDs.
type ownerName struct{ apiVersion, kind, name string }

// checkOwner refuses a request of a user who may not set an owner's finalizers.
func (o ownerReferences) checkOwner(ctx context.Context, q *registry.Request, user auth.User, owner ownerName) error {
	gv, err := schema.ParseGroupVersion(owner.apiVersion)
	var res *resource.Resource
	if err == nil {
		res = o.set.Resources().ByKind(gv.WithKind(owner.kind))
	}
	if res == nil {
		return q.Forbidden(fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s", owner.apiVersion, owner.kind))
	}
	attributes := auth.Attributes{
		User: user, Verb: "update", Group: gv.Group, Version: gv.Version, Resource: res.GroupResource().Resource, Subresource: "finalizers", Name: owner.name,
	}
	if res.Namespaced {
		attributes.Namespace = q.Namespace
	}
	if decision, reason, err := o.authorizer.Authorize(ctx, attributes); decision != auth.Allow {
		return q.Forbidden(fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %s, %s", reason, fmt.Sprint(err)))
	}
	return nil
}
