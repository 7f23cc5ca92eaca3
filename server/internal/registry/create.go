package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

const (
	maxNameLength      = 63
	maxGeneratedPrefix = maxNameLength - generatedSuffixLength
)

// generateName makes a name from a prefix. A prefix that leaves no room for
// the suffix is cut.
func (s *Set) generateName(prefix string) string {
	if len(prefix) > maxGeneratedPrefix {
		prefix = prefix[:maxGeneratedPrefix]
	}
	return prefix + s.config.NameSuffix()
}

// generateAttempts is how many random names are tried.
const generateAttempts = 8

// Create makes a new object in namespace ("" for a cluster-scoped kind). obj
// becomes the registry's; its namespace may be left out. A name is generated if
// only metadata.generateName is given.
func (r Registry) Create(ctx context.Context, namespace string, obj resource.Object, opts WriteOptions) (*Result, error) {
	if err := r.matchNamespace(obj, namespace); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" && obj.GetResourceVersion() != "0" {
		return nil, badRequest("resourceVersion should not be set on objects to be created")
	}
	obj.SetResourceVersion("")
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	if !generated {
		return r.createOnce(ctx, obj, opts)
	}
	// Preparation and admission change what they are given; each attempt
	// starts from what the client sent.
	for attempt := 1; ; attempt++ {
		candidate := obj
		if attempt < generateAttempts {
			candidate = obj.DeepCopyObject().(resource.Object)
		}
		candidate.SetName(r.set.generateName(obj.GetGenerateName()))
		result, err := r.createOnce(ctx, candidate, opts)
		if !apierrors.IsAlreadyExists(err) {
			return result, err
		}
		if attempt == generateAttempts {
			return nil, apierrors.NewGenerateNameConflict(r.res.GroupResource(), candidate.GetName(), 1)
		}
	}
}

// matchNamespace makes the object belong to the namespace of the request.
func (r Registry) matchNamespace(obj resource.Object, namespace string) error {
	switch got := obj.GetNamespace(); {
	case !r.res.Namespaced:
		obj.SetNamespace("")
	case namespace == "":
		return badRequest("a namespace is required to write %s", r.res.GroupResource())
	case got == "":
		obj.SetNamespace(namespace)
	case got != namespace:
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

func (r Registry) createOnce(ctx context.Context, obj resource.Object, opts WriteOptions) (*Result, error) {
	admitted, err := r.admitCreate(ctx, obj, opts, ownership{manager: opts.FieldManager})
	if err != nil {
		return nil, err
	}
	name := obj.GetName()
	if opts.DryRun {
		return r.tryCreate(ctx, admitted)
	}
	value, err := r.res.Encode(ctx, obj)
	if err != nil {
		admitted.finish(ctx, Refused)
		return nil, r.unencodable(name, err)
	}
	key := r.stored.StorePrefix + r.stored.Key(obj.GetNamespace(), name)
	rev, value, err := r.commit(ctx, obj, value, func(value []byte) (storage.Revision, error) {
		return r.set.config.Store.Create(ctx, key, value, r.stored.TTL)
	})
	admitted.finish(ctx, outcomeOf(err))
	if err != nil {
		if errors.Is(err, storage.ErrConflict) {
			return nil, r.alreadyExists(name)
		}
		return nil, r.storeError(name, err)
	}
	json, err := r.stored.WithRevision(value, int64(rev))
	if err != nil {
		return nil, r.storeError(name, err)
	}
	result, err := r.result(obj, json, rev)
	if result != nil {
		result.Created = true
	}
	return result, err
}

// admitCreate makes obj ready to be written.
func (r Registry) admitCreate(ctx context.Context, obj resource.Object, opts WriteOptions, own ownership) (*Request, error) {
	r.prepareCreate(ctx, obj, own)
	q := &Request{
		Operation: Create, Resource: r.res, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		Object: obj, DryRun: opts.DryRun,
	}
	// A name that is no name must not become part of a claim.
	if q.Name == "" || len(path.ValidatePathSegmentName(q.Name, false)) > 0 {
		if err := r.validateCreate(obj); err != nil {
			return nil, err
		}
	}
	if err := r.set.admit(ctx, q); err != nil {
		return nil, err
	}
	if err := r.validateCreate(obj); err != nil {
		q.finish(ctx, Refused)
		return nil, err
	}
	return q, nil
}

func (r Registry) tryCreate(ctx context.Context, q *Request) (*Result, error) {
	q.finish(ctx, Refused)
	cur, err := r.read(ctx, q.Namespace, q.Name, true)
	if err != nil {
		return nil, err
	}
	if cur.object != nil {
		return nil, r.alreadyExists(q.Name)
	}
	result, err := r.tried(q.Object, 0)
	if result != nil {
		result.Created = true
	}
	return result, err
}
