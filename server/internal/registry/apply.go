package registry

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// apply is the verb server-side apply: an update to what the merge of the wanted
// fields into the current object comes to. It creates an object that does not
// exist. opts.Decode is not called: the merge refuses fields that the kind's
// schema does not know.
func (r Registry) apply(ctx context.Context, endpoint Endpoint, namespace, name string, p *patch.Patch, opts PatchOptions) (*Result, error) {
	endpoint.Ownership = OwnershipStated
	return r.UpdateThrough(ctx, endpoint, namespace, name, func(current resource.Object) (resource.Object, error) {
		obj, err := r.FieldManager(endpoint.Subresource).Apply(ctx, current, p.Wanted(), opts.FieldManager, opts.Force)
		if err != nil {
			return nil, ApplyError(err)
		}
		return obj, opts.AfterMerge()
	}, UpdateOptions{WriteOptions: opts.WriteOptions, MayCreate: true})
}

// ApplyError returns the error that a client sees when the field manager refuses
// to merge. Fields that do not fit the kind's schema are a 500 without a reason,
// as with Kubernetes.
func ApplyError(err error) error {
	var refused *apierrors.StatusError
	if errors.As(err, &refused) {
		return refused
	}
	return status.Failure(http.StatusInternalServerError, metav1.StatusReasonUnknown, err.Error())
}
