package registry

import (
	"context"
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/resource"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

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
	if err := r.scalable(); err != nil {
		return nil, err
	}
	updater := func(current resource.Object) (resource.Object, error) {
		return r.scaled(name, current, update)
	}
	result, err := r.update(ctx, namespace, name, partMain, "scale", updater, UpdateOptions{WriteOptions: opts, Unconditional: true})
	if err != nil {
		return nil, err
	}
	return r.scaleOf(result.Object, result.Object.GetResourceVersion())
}

// PatchScale applies a patch to the object's Scale. decode turns the patched
// JSON into one and says what it thinks of unknown fields.
func (r Registry) PatchScale(ctx context.Context, namespace, name string, patch *Patch, decode func([]byte) (*autoscalingv1.Scale, error), opts WriteOptions) (*autoscalingv1.Scale, error) {
	return r.UpdateScale(ctx, namespace, name, func(current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		doc, err := json.Marshal(current)
		if err != nil {
			return nil, r.storeError(name, err)
		}
		patched, err := patch.Apply(doc, &autoscalingv1.Scale{})
		if err != nil {
			return nil, r.about(name, err)
		}
		return decode(patched)
	}, opts)
}

func (r Registry) scalable() error {
	if r.res.Scale == nil {
		return badRequest("%s have no scale subresource", r.res.GroupResource())
	}
	return nil
}

// scaled returns the object with the replicas that update wants. The other
// fields of a Scale are preconditions or not the client's.
func (r Registry) scaled(name string, current resource.Object, update func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (resource.Object, error) {
	scale, err := r.scaleOf(current, current.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	wanted, err := update(scale)
	if err != nil {
		return nil, err
	}
	if wanted.Name != name {
		return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", wanted.Name, name)
	}
	if ns := current.GetNamespace(); wanted.Namespace != "" && wanted.Namespace != ns {
		return nil, badRequest("the namespace of the object (%s) does not match the namespace on the request (%s)", wanted.Namespace, ns)
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
		return nil, badRequest("%v", err)
	}
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
