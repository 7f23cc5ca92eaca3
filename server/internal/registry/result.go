package registry

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Result is the answer to a write.
type Result struct {
	// Object is the written (or, if it is gone, the last) state in the
	// endpoint's shape. It belongs to the caller.
	Object resource.Object
	// JSON is the same, encoded with its resourceVersion: the cached form, if
	// the endpoint is what is stored. It is shared and must not be modified.
	JSON []byte
	// Revision is the object's resourceVersion, or that of its deletion if the write removed it
	// (what an update removed shows the version before); 0 for the dry run of a create.
	Revision storage.Revision
	// Created says that the write made a new object.
	Created bool
	// Deleted says that the object is gone from the store.
	Deleted bool
	// Status, if not nil, is what a delete answers instead of the object.
	Status *metav1.Status
}

// committedResult describes an object as it has been written.
func (w *pendingWrite) committedResult() (*Result, error) {
	cached, err := w.registry.stored.WithRevision(w.stored, int64(w.revision))
	if err != nil {
		return nil, w.registry.StoreError(w.name, err)
	}
	result, err := w.registry.result(w.answered(), cached, w.revision)
	if err != nil {
		return nil, err
	}
	result.Created = w.action == create
	return result, nil
}

// warn adds to the answer what the kind has to say about an object that a client has
// written through its own endpoint.
func (w *pendingWrite) warn(ctx context.Context) {
	if w.ownersWarning != "" {
		reporter.Warn(ctx, w.ownersWarning)
	}
	for _, text := range append(w.sentWarnings, w.warnings()...) {
		reporter.Warn(ctx, text)
	}
}

// warnings are what the kind has to say of what was written.
func (w *pendingWrite) warnings() []string {
	strategy := &w.registry.res.Strategy
	switch {
	case w.object == nil || w.operation != Create && w.operation != Update:
	case w.endpoint.Scope == ScopeMain && strategy.Warnings != nil:
		return strategy.Warnings(w.object, w.current.object)
	case w.endpoint.Scope == ScopeStatus && strategy.StatusWarnings != nil:
		return strategy.StatusWarnings(w.object)
	}
	return nil
}

// answered returns the object that the answer shows.
func (w *pendingWrite) answered() resource.Object {
	if w.shown != nil {
		return w.shown
	}
	return w.object
}

// unchangedResult describes an object that stays as it is in the store.
func (w *pendingWrite) unchangedResult() (*Result, error) {
	obj := w.answered()
	if obj == nil {
		obj = w.current.object
	}
	return w.registry.result(obj, w.current.json, w.current.revision)
}

// removedResult describes an object that has been removed. It carries the
// revision of the deletion, as the watch event does. The object of a delete shows it,
// too; that of an update, which let the object go, shows the version that was updated, as
// kube-apiserver's does.
func (w *pendingWrite) removedResult() (*Result, error) {
	shown := w.revision
	if _, updates := w.verb.(*update); updates {
		shown = w.current.revision
	}
	result, err := w.registry.unstoredResult(w.object, w.revision, formatRevision(shown))
	if err != nil {
		return nil, err
	}
	result.Deleted = true
	return result, nil
}

// dryRunResult describes what the write would have done.
func (w *pendingWrite) dryRunResult(ctx context.Context) (*Result, error) {
	if w.mustNotExist {
		existing, err := w.registry.read(ctx, w.namespace, w.name, true)
		if err != nil {
			return nil, err
		}
		if existing.object != nil {
			return nil, w.registry.alreadyExists(w.object, existing.object)
		}
	}
	version := w.sentVersion
	if rev := w.current.revision; rev > 0 {
		version = formatRevision(rev)
	}
	result, err := w.registry.unstoredResult(w.answered(), w.current.revision, version)
	if err != nil {
		return nil, err
	}
	result.Created, result.Deleted = w.action == create, w.action == remove
	return result, nil
}

// result describes an object that is in the store at a revision. cached is its
// cached form as the stored resource.
func (r Registry) result(obj resource.Object, cached []byte, rev storage.Revision) (*Result, error) {
	obj.SetResourceVersion(formatRevision(rev))
	shown := cached
	if r.res != r.stored {
		var err error
		if shown, err = r.res.Marshal(obj); err != nil {
			return nil, r.StoreError(obj.GetName(), err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(r.res.GroupVersionKind())
	return &Result{Object: obj, JSON: shown, Revision: rev}, nil
}

// unstoredResult describes an object that is not in the store like this, with a
// resourceVersion of its own.
func (r Registry) unstoredResult(obj resource.Object, rev storage.Revision, version string) (*Result, error) {
	obj.SetResourceVersion(version)
	obj.GetObjectKind().SetGroupVersionKind(r.res.GroupVersionKind())
	shown, err := r.res.Marshal(obj)
	if err != nil {
		return nil, r.StoreError(obj.GetName(), err)
	}
	return &Result{Object: obj, JSON: shown, Revision: rev}, nil
}

func formatRevision(rev storage.Revision) string { return strconv.FormatInt(int64(rev), 10) }
