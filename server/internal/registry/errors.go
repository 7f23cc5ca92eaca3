package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// errModified has the text by which clients recognize a failed optimistic lock.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

func (r Registry) notFound(name string) error {
	return apierrors.NewNotFound(r.res.GroupResource(), name)
}

// alreadyExists refuses to create obj, in whose place there is another object, nil if it is not known:
// one that is being deleted may be worth waiting for.
func (r Registry) alreadyExists(obj, existing resource.Object) error {
	refused := apierrors.NewAlreadyExists(r.res.GroupResource(), obj.GetName())
	if obj.GetGenerateName() != "" { // as in Kubernetes, whether the name is made of it or not
		refused = apierrors.NewGenerateNameConflict(r.res.GroupResource(), obj.GetName(), 1)
	}
	if existing != nil && existing.GetDeletionTimestamp() != nil {
		refused.ErrStatus.Message = "object is being deleted: " + refused.ErrStatus.Message
	}
	return refused
}

func (r Registry) conflict(name string, err error) error {
	return apierrors.NewConflict(r.res.GroupResource(), name, err)
}

// invalid names the kind as it is stored, like Kubernetes: what is wrong with an event of either group is
// told of the core one.
func (r Registry) invalid(name string, errs field.ErrorList) error {
	return status.Invalid(r.stored.GroupVersionKind().GroupKind(), name, errs)
}

// StoreError returns the error that a client sees for an error of the store.
// Conflicts do not come here: the write is decided again.
func (r Registry) StoreError(name string, err error) error {
	var refused *apierrors.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return err
	case errors.Is(err, storage.ErrNotFound):
		return r.notFound(name)
	case errors.Is(err, storage.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the store did not answer within the request's time limit; whether a write took effect is unknown", 1)
	case errors.Is(err, context.Canceled):
		return apierrors.NewServiceUnavailable("the request was abandoned or the server is shutting down")
	case errors.Is(err, storage.ErrFull):
		return status.InsufficientStorage(err.Error())
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrClosed):
		unavailable := apierrors.NewServiceUnavailable(err.Error())
		unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		return unavailable
	}
	return apierrors.NewInternalError(err)
}
