package registry

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
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

// Create makes a new object in namespace ("" for a cluster-scoped kind). The
// registry takes over obj; its namespace may be left out. A name is generated if
// only metadata.generateName is given.
func (r Registry) Create(ctx context.Context, namespace string, obj resource.Object, opts WriteOptions) (*Result, error) {
	if err := r.MatchNamespace(obj, namespace); err != nil {
		return nil, err
	}
	var refusal error
	sent := obj.GetResourceVersion()
	if namesRevision(sent) {
		refusal = status.BadRequest("resourceVersion should not be set on objects to be created")
	}
	obj.SetResourceVersion("")
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	if obj.GetName() == "" && !generated && r.res.Strategy.NamesUnnamed {
		obj.SetName(string(r.set.config.NewUID()))
	}
	if !generated {
		return r.createNamed(ctx, obj, opts, sent, refusal)
	}
	// The stages change the object that they are given; each attempt starts from
	// a copy of the client's.
	for attempt := 1; ; attempt++ {
		candidate := obj
		if attempt < generateAttempts {
			candidate = obj.DeepCopyObject().(resource.Object)
		}
		if r.res.Strategy.WholeGenerateName {
			candidate.SetName(obj.GetGenerateName())
		} else {
			candidate.SetName(r.set.generateName(obj.GetGenerateName()))
		}
		result, err := r.createNamed(ctx, candidate, opts, sent, refusal)
		if !apierrors.IsAlreadyExists(err) || attempt == generateAttempts {
			return result, err
		}
	}
}

// namesRevision reports whether a resourceVersion is that of a state of an object. Kubernetes'
// store overlooks what is not a number.
func namesRevision(version string) bool {
	n, err := strconv.ParseUint(version, 10, 64)
	return err == nil && n != 0
}

// MatchNamespace gives the object the namespace of the request, or refuses
// another one.
func (r Registry) MatchNamespace(obj resource.Object, namespace string) error {
	switch got := obj.GetNamespace(); {
	case !r.res.Namespaced:
		obj.SetNamespace("")
	case namespace == "":
		return status.BadRequest("a namespace is required to write %s", r.res.GroupResource())
	case got == "":
		obj.SetNamespace(namespace)
	case got != namespace:
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// createNamed makes an object that has a name. It reads no current state: the
// store refuses to create a key that exists. sent is the resourceVersion that the client has
// sent, and refusal the store's error for the object, if it has one.
func (r Registry) createNamed(ctx context.Context, obj resource.Object, opts WriteOptions, sent string, refusal error) (*Result, error) {
	w := &pendingWrite{
		registry: r, verb: creation{obj}, namespace: obj.GetNamespace(), name: obj.GetName(),
		manager: opts.FieldManager, dryRun: opts.DryRun, stated: opts.Stated, admitted: opts.Admitted,
		mustNotExist: true, sentVersion: sent, refusal: refusal, current: missing,
	}
	return w.run(ctx)
}

// creation is the verb create.
type creation struct{ object resource.Object }

func (c creation) decide(_ context.Context, w *pendingWrite) error {
	w.operation, w.action, w.object = Create, create, c.object
	return w.matchKind(c.object)
}

// Ensure creates an object unless one of its name exists, whatever that is like.
func (r Registry) Ensure(ctx context.Context, namespace string, obj resource.Object) error {
	cur, err := r.read(ctx, namespace, obj.GetName(), false)
	if err != nil || cur.object != nil {
		return err
	}
	_, err = r.Create(ctx, namespace, obj, ServerWrites)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
