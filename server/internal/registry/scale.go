package registry

import (
	"context"
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

var scaleEndpoint = Endpoint{Subresource: "scale", Ownership: OwnershipStated}

// GetScale reads how many replicas the object wants and has.
func (r Registry) GetScale(ctx context.Context, namespace, name string) (*autoscalingv1.Scale, error) {
	if err := r.scalable(); err != nil {
		return nil, err
	}
	cur, err := r.read(ctx, namespace, name, true)
	if err != nil {
		return nil, err
	}
	if cur.object == nil {
		return nil, r.notFound(name)
	}
	return r.scaleOf(cur.object, formatRevision(cur.revision))
}

// UpdateScale sets how many replicas the object wants to what update makes of
// the current scale, which it must not change.
func (r Registry) UpdateScale(ctx context.Context, namespace, name string, update func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error), opts WriteOptions) (*autoscalingv1.Scale, error) {
	return r.changeScale(ctx, namespace, name, opts, func(owners scaleOwners, current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		wanted, err := update(current)
		if err != nil {
			return nil, err
		}
		wanted = wanted.DeepCopy()
		owners.manager().Update(ctx, current, wanted, opts.FieldManager)
		return wanted, nil
	})
}

// PatchScale applies a patch to the object's Scale. decode turns the patched
// JSON into one and says what it thinks of unknown fields.
func (r Registry) PatchScale(ctx context.Context, namespace, name string, p *patch.Patch, decode func([]byte) (*autoscalingv1.Scale, error), opts PatchOptions) (*autoscalingv1.Scale, error) {
	if p.IsApply() {
		return r.applyScale(ctx, namespace, name, p, opts)
	}
	return r.UpdateScale(ctx, namespace, name, func(current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		doc, err := json.Marshal(current)
		if err != nil {
			return nil, r.storeError(name, err)
		}
		patched, err := p.Apply(doc, &autoscalingv1.Scale{})
		if err != nil {
			return nil, r.WithDetails(name, err)
		}
		return decode(patched)
	}, opts.WriteOptions)
}

// applyScale merges what a manager wants into the object's Scale.
func (r Registry) applyScale(ctx context.Context, namespace, name string, p *patch.Patch, opts PatchOptions) (*autoscalingv1.Scale, error) {
	return r.changeScale(ctx, namespace, name, opts.WriteOptions, func(owners scaleOwners, current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		merged, err := owners.manager().Apply(ctx, current, p.Wanted(), opts.FieldManager, opts.Force)
		if err != nil {
			return nil, ApplyError(err)
		}
		return merged.(*autoscalingv1.Scale), nil
	})
}

// changeScale sets the replicas, and who owns them, to what decide makes of the
// current scale.
func (r Registry) changeScale(ctx context.Context, namespace, name string, opts WriteOptions, decide func(scaleOwners, *autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (*autoscalingv1.Scale, error) {
	if err := r.scalable(); err != nil {
		return nil, err
	}
	result, err := r.UpdateThrough(ctx, scaleEndpoint, namespace, name, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			return nil, r.notFound(name)
		}
		return r.scaled(name, current, decide)
	}, UpdateOptions{WriteOptions: opts, Unconditional: true})
	if err != nil {
		return nil, err
	}
	return r.scaleOf(result.Object, result.Object.GetResourceVersion())
}

func (r Registry) scalable() error {
	if r.res.Scale == nil {
		return status.BadRequest("%s have no scale subresource", r.res.GroupResource())
	}
	return nil
}

// scaled returns the object with the replicas that decide wants. The other
// fields of a Scale are preconditions or not the client's.
func (r Registry) scaled(name string, current resource.Object, decide func(scaleOwners, *autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (resource.Object, error) {
	scale, err := r.scaleOf(current, current.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	owners := r.scaleOwners(current, scale)
	wanted, err := decide(owners, scale)
	if err != nil {
		return nil, err
	}
	if wanted.Name != name {
		return nil, status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", wanted.Name, name)
	}
	if ns := current.GetNamespace(); wanted.Namespace != "" && wanted.Namespace != ns {
		return nil, status.BadRequest("the namespace of the object (%s) does not match the namespace on the request (%s)", wanted.Namespace, ns)
	}
	if wanted.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(scaleKind.GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), wanted.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	obj := current.DeepCopyObject().(resource.Object)
	obj.SetResourceVersion(wanted.ResourceVersion)
	obj.SetUID(wanted.UID)
	if err := r.res.Scale.Set(obj, wanted.Spec.Replicas); err != nil {
		return nil, status.BadRequest("%v", err)
	}
	owners.giveTo(obj, wanted)
	return obj, nil
}

func (r Registry) scaleOf(obj resource.Object, version string) (*autoscalingv1.Scale, error) {
	spec, status, selector, err := r.res.Scale.Get(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("scale of %s %q: %w", r.res.GroupResource(), obj.GetName(), err))
	}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: scaleKind.Kind, APIVersion: scaleKind.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: version, CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: spec},
		Status: autoscalingv1.ScaleStatus{Replicas: status, Selector: selector},
	}, nil
}
